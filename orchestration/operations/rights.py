"""The permissions that operations need; checked again under the lock of the operation's row."""

from ..models.operation import Act

UNDO = "orchestration.undo"
HOLD = "orchestration.hold"
APPROVE = "orchestration.approve"
FORCE_UNDO = "orchestration.force_undo"

# the permission that an action on one task needs, which the same on many needs too
NEEDED = {
    Act.RESUBMIT: "orchestration.resubmit",
    Act.UNDO: UNDO,
    Act.HOLD: HOLD,
    Act.RELEASE: HOLD,
    Act.BY_HAND: "orchestration.correct",
}
FORCED = (UNDO, FORCE_UNDO)


def needed(act: Act, *, forced: bool = False) -> tuple[str, ...]:
    """Return the permissions that `act` on many tasks needs."""
    return FORCED if forced else (NEEDED[act],)
