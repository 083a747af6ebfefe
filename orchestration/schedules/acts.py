"""What operators do to a schedule: pause it, resume it, run it now."""

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F

from ..applications import by_hand
from ..database import clock
from ..models import Schedule
from . import submitting


class StillGoing(Exception):
    """The last task of a schedule has not ended; the text is its reference."""


def locked(number: int) -> Schedule | None:
    """Return a schedule, locked until the transaction ends."""
    return Schedule.objects.select_for_update().filter(id=number).first()


@transaction.atomic
def set_paused(number: int, paused: bool, *, user: User, reason: str) -> bool:
    """Pause or resume a schedule, with a version in its history; return whether that changed it.

    What is due while it is paused is not caught up.
    """
    row = locked(number)
    if row is None or row.paused == paused:
        return False
    row.paused = paused
    row._history_user = user  # type: ignore[attr-defined] # noqa: SLF001 - documented by simple_history
    row._change_reason = reason  # type: ignore[attr-defined] # noqa: SLF001 - documented by simple_history
    row.save()
    return True


@transaction.atomic
def run_now(row: Schedule, reference: str, *, actor: str, reason: str) -> bool:
    """Submit a task of a schedule at once, beside its due times; return whether this call did it.

    Raises `StillGoing` where the schedule allows no overlap and its last task has not ended, and what
    `by_hand.start` raises.
    """
    row = locked(row.id) or row
    if by_hand.started(row.workflow, reference) is None and submitting.going([row]):
        raise StillGoing(row.last_reference)
    now = clock.database_now().replace(microsecond=0)
    posting = submitting.posting(row, reference, now)
    if fresh := by_hand.start_posting(posting, actor=actor, reason=reason):
        Schedule.objects.filter(id=row.id).update(
            last_due=now, last_reference=reference, submitted=F("submitted") + 1
        )
    return fresh
