"""Record failures of a lane's rows, with log lines and alerts: a deploy may be under way, or a row is bad."""

import logging
import random
from collections import defaultdict
from collections.abc import Collection, Sequence

from django.db import transaction

from .. import conf
from ..database import sql
from ..database.lane import Chance, Failure, Lane, Problem
from ..models.alert import Severity
from ..tracing.subject import about_reference
from ..workflow import Refused
from . import alerts
from .alerts import AlertReport

logger = logging.getLogger(__name__)


@transaction.atomic
def fail(
    lane: Lane,
    ids: Collection[int],
    error: Exception | str,
    *,
    problem: Problem = Problem.FAILING,
    tries: int | None = None,
    chance: Chance = random.random,
) -> list[Failure]:
    """Set open rows aside if their application refuses them; have them wait after any other failure.

    Return those that were still open. See `Lane.fail` for `tries`.
    """
    refused = isinstance(error, Refused)
    reason = error if isinstance(error, str) else f"{type(error).__name__}: {sql.first_line(error)}"
    if refused:
        reason = sql.storable(str(error)) or "refused"
    failures = lane.fail(ids, reason, refused=refused, problem=problem, tries=tries, chance=chance)
    groups: dict[str, list[Failure]] = defaultdict(list)
    for failure in failures:
        if failure.refused:
            why = reason if refused else f"Given up after {failure.tries} tries: {reason}"
            _report_refused(lane, failure, why)
        else:
            groups[failure.group].append(failure)
    for group, waiting in sorted(groups.items()):
        _report_waiting(lane, group, waiting, reason, problem)
    return failures


def _report_refused(lane: Lane, failure: Failure, why: str) -> None:
    alerts.raise_alert(
        f"{lane.name}/{failure.group}",
        severity=Severity.CRITICAL,
        title=lane.refused.format(failure.group),
        detail=why,
    )
    logger.error("%s was set aside: %s", failure.label, why, extra=_about(failure))


def _report_waiting(
    lane: Lane, group: str, waiting: Sequence[Failure], reason: str, problem: Problem
) -> None:
    """Log rows that wait; raise an alert from the second failure on, after some minutes a critical one."""
    first = waiting[0]
    what = first.label if len(waiting) == 1 else f"{len(waiting)} of {group}"
    logger.warning("%s: waiting for the next try: %s", what, reason, extra=_about(first))
    title = (lane.unknown if problem == Problem.UNKNOWN else lane.failing).format(group)
    tries = max(failure.tries for failure in waiting)
    raised = []
    if title and tries > 1:
        raised.append(
            AlertReport(
                fingerprint=f"{lane.name}/{group}/{problem.value}",
                severity=Severity.WARNING,
                title=title,
                detail=f"It is retried automatically. Reason: {reason}",
            )
        )
    if title and tries >= conf.ALERT_AFTER_FAILURES:
        raised.append(
            AlertReport(
                fingerprint=f"{lane.name}/{group}/{alerts.STUCK}",
                severity=Severity.CRITICAL,
                title=f"{title} for several minutes",
                detail=reason,
            )
        )
    if raised:
        alerts.raise_all(raised)


def _about(failure: Failure) -> dict[str, object]:
    return dict(about_reference(failure.workflow, failure.reference))
