"""Alerts that no supervisor or no housekeeper leads, or that the one that leads finishes no sweep.

For a process that is neither. Those who lead close them with their next sweep, as this does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from .. import alerts, conf, leader, policies, sql
from ..lasting import Lasting
from ..models.alert import Severity
from ..troubles import PREFIX, Trouble, open_alerts, raise_trouble

# While a schedule starts them, none is missed before the next one is late. A lease that runs for
# longer than one can shows that the clock went back.
LED = """
SELECT expires_at > clock_timestamp() AND expires_at < clock_timestamp() + %(longest)s
        OR coalesce(awaited_until > clock_timestamp(), false),
    coalesce(awaited_until > clock_timestamp(), false)
        OR swept_at BETWEEN clock_timestamp() - %(late)s AND clock_timestamp() + %(late)s
FROM orchestration_lease WHERE name = %(name)s
"""


@dataclass(frozen=True)
class Missing:
    """What it means that none leads."""

    no_leader: str
    not_swept: str


MEANS: Mapping[str, Missing] = {
    leader.SUPERVISOR: Missing(
        "What fails is neither retried nor reported until one is started.",
        "What fails may be neither retried nor reported. Its log says why.",
    ),
    leader.HOUSEKEEPER: Missing(
        "Bulk operations, incidents, figures and alerts about the machinery stand still until one is "
        "started. Tasks go on, but for those of holds that have ended.",
        "Bulk operations, incidents, figures and alerts may stand still. Its log says why.",
    ),
}


def no_leader(name: str) -> Trouble:
    """Return the trouble that none leads."""
    return Trouble(
        fingerprint=f"{PREFIX}{name}/no_leader",
        severity=Severity.CRITICAL,
        title=f"No {name} leads",
        detail=MEANS[name].no_leader,
    )


def not_swept(name: str) -> Trouble:
    """Return the trouble that the one that leads finishes no sweep."""
    return Trouble(
        fingerprint=f"{PREFIX}{name}/not_swept",
        severity=Severity.CRITICAL,
        title=f"The {name} that leads does not finish a sweep",
        detail=MEANS[name].not_swept,
    )


def look(name: str, absent: Lasting, *, patience: float = conf.LEASE) -> bool:
    """Alert if for a while none has led, or the leader finished no sweep; return whether one leads.

    A lease that ran out, or a sweep that is late, is first given `patience` seconds more. The alerts
    close when it is over.
    """
    longest, late = timedelta(seconds=2 * conf.LEASE), timedelta(seconds=policies.patience())
    ((led, swept),) = sql.run(LED, {"name": name, "longest": longest, "late": late}) or ((0, 0),)
    wrong = no_leader(name) if not led else not_swept(name) if not swept else None
    for trouble in (no_leader(name), not_swept(name)):
        if trouble != wrong:
            alerts.close(trouble.fingerprint)
    lasting = absent.of([wrong.fingerprint] if wrong else [], patience)
    if wrong and lasting - set(open_alerts().filter(fingerprint__in=lasting)):
        raise_trouble(wrong)
    return bool(led)
