"""What those outside see of a task: said by the application, shown to operators beside the rest."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Sight:
    """How a task looks from outside.

    `who` sees it ("the traveller"); `sentence` is what they are told at this moment; `url` is where
    they see it, if there is such a page; `mood` colours it: info, success, warning or error.
    """

    who: str
    sentence: str
    url: str = ""
    mood: str = "info"
