"""Raise alerts when no supervisor or housekeeper leads, or its leader finishes no sweep.

Runs in a process that is neither. Leaders also close these alerts with their next sweep.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from .. import conf, policies
from ..alerting import alerts
from ..cluster import leader_election
from ..cluster.debounce import Debounce
from ..database import sql
from ..models.alert import Severity
from .conditions import PREFIX, Condition, open_alerts, raise_condition

# With scheduled sweeps, a leader is missing only when the next sweep is late. A lease that ends later than
# any lease can shows that the clock went back.
LED = f"""
SELECT expires_at > clock_timestamp() AND expires_at < clock_timestamp() + %(longest)s
        OR coalesce(next_sweep_due > clock_timestamp(), false),
    {leader_election.SWEPT_LATELY}
FROM orchestration_lease WHERE name = %(name)s
"""  # noqa: S608 - put together from constants


@dataclass(frozen=True)
class Missing:
    """The consequences of a missing leader, and of a leader that does not sweep."""

    no_leader: str
    not_swept: str


MEANS: Mapping[str, Missing] = {
    leader_election.SUPERVISOR: Missing(
        "What fails is neither retried nor reported until one is started.",
        "What fails may be neither retried nor reported. Its log says why.",
    ),
    leader_election.HOUSEKEEPER: Missing(
        "Bulk operations, incidents, figures and alerts about the machinery stand still until one is "
        "started. Tasks go on, but for those of holds that have ended.",
        "Bulk operations, incidents, figures and alerts may stand still. Its log says why.",
    ),
}


def no_leader(name: str) -> Condition:
    """Return the condition that no process leads."""
    return Condition(
        fingerprint=f"{PREFIX}{name}/no_leader",
        severity=Severity.CRITICAL,
        title=f"No {name} leads",
        detail=MEANS[name].no_leader,
    )


def not_swept(name: str) -> Condition:
    """Return the condition that the leader finishes no sweep."""
    return Condition(
        fingerprint=f"{PREFIX}{name}/not_swept",
        severity=Severity.CRITICAL,
        title=f"The {name} that leads does not finish a sweep",
        detail=MEANS[name].not_swept,
    )


def look(name: str, absent: Debounce, *, patience: float = conf.LEASE_S) -> bool:
    """Raise or close the alerts about a missing leader or sweep; return whether a process leads.

    An expired lease or a late sweep must last for `patience` more seconds before its alert.
    """
    longest, late = timedelta(seconds=2 * conf.LEASE_S), timedelta(seconds=policies.patience())
    ((led, swept),) = sql.run(LED, {"name": name, "longest": longest, "late": late}) or ((0, 0),)
    wrong = no_leader(name) if not led else not_swept(name) if not swept else None
    for condition in (no_leader(name), not_swept(name)):
        if condition != wrong:
            alerts.close(condition.fingerprint)
    lasting = absent.of([wrong.fingerprint] if wrong else [], patience)
    if wrong and lasting - set(open_alerts().filter(fingerprint__in=lasting)):
        raise_condition(wrong)
    return bool(led)
