"""Record failures of a lane's rows, with log lines and alerts: a deploy may be under way, or a row is bad."""

import logging
import random
from collections.abc import Collection, Iterator

from django.db import transaction

from .. import conf
from ..database import sql
from ..database.lane import Chance, Failure, Lane, Problem
from ..models.alert import Severity
from ..tracing.subject import about_reference
from ..workflows.workflow import Refused
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
    for failure in failures[:1]:  # the others failed for the same reason
        logger.log(
            logging.ERROR if failure.refused else logging.WARNING,
            "%s (one of %d) %s: %s",
            failure.label,
            len(failures),
            "was set aside" if failure.refused else "waits for its next try",
            reason,
            extra=about_reference(failure.workflow, failure.reference),
        )
    reports = {
        report.fingerprint: report
        for failure in failures
        for why in [reason if refused else f"Given up after {failure.tries} tries: {reason}"]
        for report in _reports(lane, failure, why if failure.refused else reason, problem)
    }
    if reports:
        alerts.raise_all(list(reports.values()))
    return failures


def _reports(lane: Lane, failure: Failure, reason: str, problem: Problem) -> Iterator[AlertReport]:
    """Return the alerts of a failure: set aside, or the second and later; after some minutes critical."""
    cause = f"{lane.name}/{failure.group}"
    if failure.refused:
        title = lane.refused.format(failure.group)
        yield AlertReport(fingerprint=cause, severity=Severity.CRITICAL, title=title, detail=reason)
        return
    title = (lane.unknown if problem == Problem.UNKNOWN else lane.failing).format(failure.group)
    if title and failure.tries > 1:
        yield AlertReport(
            fingerprint=f"{cause}/{problem.value}",
            severity=Severity.WARNING,
            title=title,
            detail=f"It is retried automatically. Reason: {reason}",
        )
    if title and failure.tries >= conf.ALERT_AFTER_FAILURES:
        yield AlertReport(
            fingerprint=f"{cause}/{alerts.STUCK}",
            severity=Severity.CRITICAL,
            title=f"{title} for several minutes",
            detail=reason,
        )
