"""Find hosts whose clock differs from the database's."""

from collections.abc import Sequence
from statistics import median_high, median_low

from .. import conf
from ..alerting.alerts import AlertReport
from ..models import Worker
from ..models.alert import Severity
from ..supervision.conditions import PREFIX

CLOCK = f"{PREFIX}clock/"


def clocks_off(alive: Sequence[Worker]) -> list[AlertReport]:
    """Return a report on each host whose clock is off; one on all if the database's clock is."""
    offsets = [(worker.host, worker.clock_offset) for worker in alive]
    differences = [offset for _, offset in offsets] or [0.0]
    # of two, trust the database's clock
    usual = min(median_low(differences), median_high(differences), key=abs)
    if abs(usual) <= conf.CLOCK_JUMP_S:
        usual = 0.0
    odd = {host: offset for host, offset in offsets if abs(offset - usual) > conf.CLOCK_JUMP_S}
    off = {f"{CLOCK}{host}": (f"The clock of {host}", offset) for host, offset in odd.items()}
    if usual:
        off[f"{CLOCK}all"] = ("Most hosts' clock", usual)
    return [
        AlertReport(
            fingerprint=fingerprint,
            severity=Severity.WARNING,
            title=f"{whose} is {abs(offset):.0f} s {'behind' if offset > 0 else 'ahead of'} the "
            "database's",
            detail="Tasks are not affected: all times come from the database. Check which clock is "
            "right, and correct the other.",
        )
        for fingerprint, (whose, offset) in sorted(off.items())
    ]
