"""How an attempt may fail, as far as an agent can tell (P25)."""

from typing import ClassVar

from ..states import Health, Outcome

LONGEST_CODE = 100
LONGEST_MESSAGE = 500  # of a remote service's error text


class Fault(Exception):
    """An attempt that did not succeed. `code` is short and stable; `message` is for people.

    `retry_after` is the seconds for which the service asked that it be put off: then the attempt is
    over, whatever tries it has left. `health` is what it says about the service, where that is not
    plain from the outcome: a failure is bad, a refusal is not.
    """

    outcome: ClassVar[Outcome]

    def __init__(
        self,
        code: str,
        message: str = "",
        *,
        retry_after: float | None = None,
        health: Health | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = _printable(code)[:LONGEST_CODE]
        self.message = _printable(message)[:LONGEST_MESSAGE]
        self.retry_after = retry_after
        self.health = health


class Transient(Fault):
    """The service did nothing, for now: a repeat may succeed."""

    outcome = Outcome.TRANSIENT


class Rejected(Fault):
    """The service refused for good: a repeat would not help (P25).

    `stored`: it is the service's answer to the key, kept and given to every repeat. Only such a
    refusal says that no earlier call under the key had its effect either. `in_doubt`: it says that
    there was an earlier call, as when the key was used before for something else.
    """

    outcome = Outcome.REJECTED

    def __init__(
        self,
        code: str,
        message: str = "",
        *,
        retry_after: float | None = None,
        health: Health | None = None,
        stored: bool = False,
        in_doubt: bool = False,
    ) -> None:
        super().__init__(code, message, retry_after=retry_after, health=health)
        self.stored = stored
        self.in_doubt = in_doubt


class Unknown(Fault):
    """The effect may have happened: only a repeat under the same key, or a question, can tell."""

    outcome = Outcome.UNKNOWN


def _printable(text: str) -> str:
    """Return a remote service's text without what a terminal or a database could choke on."""
    clean = text.encode("utf-8", "replace").decode()
    return "".join(letter if letter.isprintable() else " " for letter in clean).strip()
