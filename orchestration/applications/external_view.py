"""The view of a task that people outside have, as its application describes it to operators."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ExternalView:
    """A task as people outside see it.

    `who` sees it ("the traveller"); `sentence` is what they read at the moment; `url` is their page, if
    there is one; `mood` is info, success, warning or error.

    >>> ExternalView(who="the guest", sentence="Your room is ready.", mood="success").url
    ''
    """

    who: str
    sentence: str
    url: str = ""
    mood: str = "info"
