"""What a step declares beside its call: whether it is needed, and what follows a refusal."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ..states import OnRejection

PASS = "pass"  # noqa: S105 - follows a refusal: the step is skipped, and the task goes on
AWAY = "away"  # the code of a step whose service has been away for too long
LATE = "late"  # the code of a result that did not come in time
CHILD_UNDONE = "child_undone"  # the code of a step one of whose child tasks was undone by itself
ANY = "*"  # among the codes of refusals: each that is not named
# Of what failed by a mistake in code or data, and was not refused: "*" stands for none of these.
MISTAKES = frozenset({"compute_failed", "not_loaded", "invalid_request", "no_such_function"})
CHILDREN = "children"  # the undo action of a step with child tasks: these are undone


class Flow(Struct, frozen=True, omit_defaults=True, gc=False):
    """The declaration as it is stored with the step; plain steps have none.

    `when` is a template: if its value is false, empty, 0 or null, the step is skipped. `refused` says by
    the code of a refusal what follows, before the step's policy does. What is accepted, or awaited from a
    `person` of a role or a `signal`, has to end within `ends_within` seconds, or by that time, a template;
    `late` says what follows otherwise. `remind` are seconds after which its application is reminded before.
    `not_before` is a template of the seconds for which the step waits once all in `after` have ended, or of
    the time until which it does; null: it does not wait.
    It is refused once it has waited for `away_after` seconds in which its service answered nothing.
    `workflow` is that of its child tasks; it ends as `enough` of them are processed, or all have ended.
    """

    when: Any = True
    refused: Mapping[str, str] = {}
    person: str = ""
    signal: str = ""
    ends_within: Any = None
    late: str = OnRejection.ERROR.value
    remind: Sequence[float] = ()
    not_before: Any = None
    workflow: str = ""
    enough: int | None = None
    away_after: float | None = None

    @property
    def is_awaited(self) -> bool:
        """Return whether its result comes from a person or a signal, and not from an agent."""
        return bool(self.person or self.signal)

    def on(self, code: str) -> str | None:
        """Return what follows a refusal with this code; None: what the policy says."""
        return self.refused.get(code, None if code in MISTAKES else self.refused.get(ANY))

    def passes(self, code: str) -> bool:
        """Return whether the task goes on without the step after a refusal with this code."""
        return self.on(code) == PASS
