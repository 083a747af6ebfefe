"""The ways in which an attempt can fail, as an agent sees it (P25)."""

from collections.abc import Mapping
from typing import Any, ClassVar

from ..payloads.text import printable
from ..states import Health, Outcome

LONGEST_CODE = 100
TIMEOUT = "timeout"  # the code of a call that was ended, or not answered in time
LONGEST_MESSAGE = 500  # of a remote service's error text


class Fault(Exception):
    """An attempt that did not succeed. `code` is short and stable; `message` is for people.

    `retry_after` is the pause that the service asked for, in seconds; it ends the attempt, even if tries
    are left. `health` is what the fault says about the service, where the outcome does not: by default a
    failure is bad, a refusal is good.
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
        self.code = printable(code).strip()[:LONGEST_CODE]
        self.message = printable(message).strip()[:LONGEST_MESSAGE]
        self.retry_after = retry_after
        self.health = health
        self.raised: Exception | None = None  # what the agent's code raised instead


class Transient(Fault):
    """The service did nothing; a repeat may succeed."""

    outcome = Outcome.TRANSIENT


class Rejected(Fault):
    """The service refused permanently; a repeat would not help (P25).

    `stored`: the service keeps this refusal under the key and returns it to every repeat. Only then is it
    certain that no earlier call under the key had an effect. `in_doubt`: the refusal shows that there was
    an earlier call, such as one that used the key for another request.
    """

    outcome = Outcome.REJECTED

    def __init__(
        self,
        code: str,
        message: str = "",
        *,
        stored: bool = False,
        in_doubt: bool = False,
        health: Health | None = None,
    ) -> None:
        super().__init__(code, message, health=health)
        self.stored = stored
        self.in_doubt = in_doubt


class Later(Fault):
    """The service accepted the request, and its result comes later: `api.complete` reports it.

    `accepted` is what the service answered; until then it is the step's result, for an undo. `id` is the
    service's own name of what it does, at most 200 characters. With `look`, the agent is asked (`look`) after
    so long each time, in seconds.

    >>> async def charge(self, call):
    ...     raise Later(accepted={"url": "https://bank.example/confirm"}, id="pi_1", look=60)
    """

    outcome = Outcome.LATER

    def __init__(
        self,
        code: str = "accepted",
        message: str = "",
        *,
        accepted: Mapping[str, Any] | None = None,
        id: str = "",  # noqa: A002 - what the service calls it
        look: float | None = None,
    ) -> None:
        super().__init__(code, message, health=Health.GOOD)
        self.accepted = dict(accepted or {})
        self.id = id
        self.look = look


class Unknown(Fault):
    """The effect may have happened; only a repeat under the same key, or a question, shows it."""

    outcome = Outcome.UNKNOWN
