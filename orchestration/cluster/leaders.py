"""Who leads the supervisors, and the housekeepers, and whether it does its work."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from .. import conf
from ..models import Lease
from . import leader_election


@dataclass(frozen=True, kw_only=True)
class Leader:
    """Who leads processes of one kind; `held` while its lease runs.

    `awaited` while no lease runs, and a schedule is to start the next sweep: none is missed.
    """

    name: str
    lease: Lease | None
    held: bool
    awaited: bool
    sweeps: bool
    patience: float = conf.LEASE_S


def leaders(now: datetime) -> list[Leader]:
    """Return who leads processes of each kind."""
    leases = Lease.objects.in_bulk(leader_election.NAMES)
    return [_leader(name, leases.get(name), now) for name in leader_election.NAMES]


def _leader(name: str, lease: Lease | None, now: datetime) -> Leader:
    swept = lease.swept_at if lease else None
    held = bool(lease and lease.holder and lease.expires_at > now)
    return Leader(
        name=name,
        lease=lease,
        held=held,
        awaited=bool(not held and lease and lease.next_sweep_due and lease.next_sweep_due > now),
        sweeps=bool(swept and now - swept < timedelta(seconds=conf.WORKER_DEAD_AFTER_S)),
    )
