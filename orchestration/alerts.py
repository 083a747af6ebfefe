"""Alerts: one open row per cause, closed when nothing suffers from it any more."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from . import sql
from .models import Alert, Task
from .models.alert import Severity
from .models.fields import DatabaseNow
from .states import LIVE_TASK_STATES

# Locks the open alert of a cause, or makes it; concurrent raisers wait for each other here.
RAISE = """
INSERT INTO orchestration_alert (fingerprint, severity, title, detail, count, first_seen, last_seen)
VALUES (%(fingerprint)s, %(severity)s, %(title)s, %(detail)s, %(count)s,
    clock_timestamp(), clock_timestamp())
ON CONFLICT (fingerprint) WHERE closed_at IS NULL DO UPDATE SET
    count = orchestration_alert.count + excluded.count, last_seen = clock_timestamp(),
    detail = excluded.detail
RETURNING id
"""

CLOSE = """
UPDATE orchestration_alert SET closed_at = clock_timestamp()
WHERE id = ANY(%(ids)s) AND closed_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM orchestration_step WHERE alert_id = orchestration_alert.id)
"""


@dataclass(frozen=True, kw_only=True)
class StepError:
    """A step that went to error, as far as its cause goes."""

    workflow: str
    step: str
    code: str
    message: str

    @property
    def fingerprint(self) -> str:
        """Return what is the same for all failures of one cause."""
        return f"step/{self.workflow}/{self.step}/{self.code}"[:300]

    @property
    def title(self) -> str:
        """Return the cause in a line."""
        return f"{self.workflow}: {self.step} failed ({self.code or 'unknown error'})"[:300]


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
            severity=Severity.CRITICAL,
            title=by_cause[cause].title,
            detail=by_cause[cause].message,
            count=counts[cause],
        )
        for cause in sorted(by_cause)  # one order for all, so that no two wait in a circle
    }
    return [ids[error.fingerprint] for error in errors]


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
    sql.run(CLOSE, {"ids": locked})


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
    return (
        Alert.objects.filter(fingerprint__startswith="overdue/", closed_at=None)
        .exclude(fingerprint__in=suffering)
        .update(closed_at=DatabaseNow())
    )
