"""Alerts: one open row per cause, closed when nothing suffers from it any more."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction

from . import notices, sql
from .models import Alert, Event, Task
from .models.alert import Severity
from .models.history import EventKind
from .states import LIVE_TASK_STATES

# Locks the open alert of a cause, or makes it; concurrent raisers wait for each other here. Whoever
# is to be told is told of one that was made (a row without xmax), in the same statement.
RAISE = f"""
WITH raised AS (
    INSERT INTO orchestration_alert
        (fingerprint, severity, title, detail, count, first_seen, last_seen)
    VALUES (%(fingerprint)s, %(severity)s, %(title)s, %(detail)s, %(count)s,
        clock_timestamp(), clock_timestamp())
    ON CONFLICT (fingerprint) WHERE closed_at IS NULL DO UPDATE SET
        count = orchestration_alert.count + excluded.count, last_seen = clock_timestamp(),
        detail = excluded.detail
    RETURNING id, severity, xmax = 0 AS opened
), {notices.OPENED}
SELECT id FROM raised
"""  # noqa: S608 - put together from constants

HEALED = """
a.id = ANY(%(ids)s) AND NOT EXISTS (SELECT 1 FROM orchestration_step s WHERE s.alert_id = a.id)
"""

ACKNOWLEDGE = """
UPDATE orchestration_alert SET acknowledged_at = clock_timestamp(), acknowledged_by = %(by)s
WHERE id = ANY(%(ids)s) AND closed_at IS NULL AND acknowledged_at IS NULL
RETURNING id, title
"""


@dataclass(frozen=True, kw_only=True)
class StepError:
    """A step that went to error, as far as its cause goes."""

    workflow: str
    step: str
    code: str
    message: str
    undo: bool = False
    settles_itself: bool = False  # its task is undone if nobody mends it: no need to wake anybody

    @property
    def fingerprint(self) -> str:
        """Return what is the same for all failures of one cause."""
        kind = "undo" if self.undo else "step"
        return f"{kind}/{self.workflow}/{self.step}/{self.code}"[:300]

    @property
    def title(self) -> str:
        """Return the cause in a line."""
        what = f"the undo of {self.step}" if self.undo else self.step
        partly = ": partly undone" if self.undo else ""
        return f"{self.workflow}: {what} failed ({self.code or 'unknown error'}){partly}"[:300]


def raise_alert(
    fingerprint: str, *, severity: Severity, title: str, detail: str = "", count: int = 1
) -> int:
    """Open the alert of a cause, or count it again if it is open; return its id."""
    row = {
        "fingerprint": fingerprint,
        "severity": severity.value,
        "title": title,
        "detail": detail,
        "count": count,
    }
    return int(sql.run(RAISE, row)[0][0])


def raise_for_steps(errors: Sequence[StepError]) -> list[int]:
    """Raise one alert per cause among `errors`; return the alert's id for each of them."""
    counts = Counter(error.fingerprint for error in errors)
    by_cause = {error.fingerprint: error for error in errors}
    ids = {
        cause: raise_alert(
            cause,
            severity=Severity.WARNING if by_cause[cause].settles_itself else Severity.CRITICAL,
            title=by_cause[cause].title,
            detail=by_cause[cause].message,
            count=counts[cause],
        )
        for cause in sorted(by_cause)  # one order for all, so that no two wait in a circle
    }
    return [ids[error.fingerprint] for error in errors]


def close(fingerprint: str) -> None:
    """Close the open alert of a cause, if there is one."""
    notices.close("a.fingerprint = %(fingerprint)s", {"fingerprint": fingerprint})


@transaction.atomic
def acknowledge(alerts: Iterable[int], *, by: str, reason: str = "") -> int:
    """Record that somebody has taken care of open alerts; return of how many nobody had before."""
    taken = sql.run(ACKNOWLEDGE, {"ids": list(alerts), "by": by})
    Event.objects.bulk_create(
        Event(
            kind=EventKind.ACKNOWLEDGED, actor=by, reason=reason,
            detail={"alert": alert, "title": title},
        )
        for alert, title in taken
    )  # fmt: skip
    return len(taken)


def close_if_healed(alerts: Iterable[int | None]) -> None:
    """Close those of `alerts` that no step in error refers to any more.

    The rows are locked first: whoever raises the same cause meanwhile has either attached its step
    by the time we look, or waits and then opens a new alert.
    """
    locked = list(
        Alert.objects.select_for_update()
        .filter(id__in=[alert for alert in alerts if alert is not None])
        .order_by("id")
        .values_list("id", flat=True)
    )
    if locked:
        notices.close(HEALED, {"ids": locked})


def overdue(tasks: Sequence[Task]) -> None:
    """Raise one alert per workflow whose tasks are past their time."""
    for workflow, count in sorted(Counter(task.workflow for task in tasks).items()):
        raise_alert(
            f"overdue/{workflow}",
            severity=Severity.WARNING,
            title=f"{workflow}: tasks take longer than they are allowed",
            count=count,
        )


def close_overdue() -> int:
    """Close the alerts about overdue tasks of workflows that have none left; return how many."""
    late = Task.objects.filter(overdue=True, state__in=LIVE_TASK_STATES)
    names = late.values_list("workflow", flat=True).distinct()
    suffering = [f"overdue/{workflow}" for workflow in names]
    return notices.close(
        "a.fingerprint LIKE 'overdue/%%' AND a.fingerprint <> ALL(%(suffering)s)",
        {"suffering": suffering},
    )
