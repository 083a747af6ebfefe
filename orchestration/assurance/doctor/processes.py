"""The processes: whether each queue has a worker, a supervisor and a housekeeper lead, and clocks agree."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Warn
from django.db import Error as DatabaseError

from ... import conf
from ...cluster import heartbeat
from ...cluster.leaders import leaders
from ...database import clock
from ...messaging import queue_names
from .subjects import Moot, Subject


@dataclass(frozen=True, kw_only=True)
class Processes:
    """The facts: queues without a worker, kinds without a leader, and clocks that differ, in seconds."""

    queues: int
    unserved: Sequence[str]
    leaderless: Sequence[str]
    clocks: Mapping[str, float]


def gather() -> Processes:
    """Read the living processes; whether the database is unavailable, or empty, is another subject."""
    try:
        now, alive = clock.database_now(), heartbeat.alive()
        led = leaders(now)
    except DatabaseError as error:
        raise Moot from error
    needed = queue_names.declared()
    served = {worker.queue for worker in alive}
    return Processes(
        queues=len(needed),
        unserved=[queue for queue in needed if queue not in served],
        leaderless=[
            leader_row.name for leader_row in led if not (leader_row.held or leader_row.awaited)
        ],
        clocks={
            f"{worker.instance} on {worker.host}": worker.clock_offset
            for worker in alive
            if abs(worker.clock_offset) > conf.CLOCK_JUMP_S
        },
    )


subject = Subject("processes", gather, remedy="Start the processes: docs/run/install.md.")


@subject.check
def workers(facts: Processes) -> Iterator[CheckMessage]:
    """Check that each queue has a worker."""
    if len(facts.unserved) == facts.queues:
        yield Error(
            "No worker runs: tasks are accepted, and none is processed.",
            hint="Start `manage.py work --all` under a process manager.",
        )
    elif facts.unserved:
        yield Error(
            f"No worker serves {', '.join(facts.unserved)}.",
            hint=f"Start `manage.py work {' '.join(facts.unserved)}` under a process manager.",
        )


@subject.check
def leader(facts: Processes) -> Iterator[CheckMessage]:
    """Check that a process of each kind leads."""
    for name in facts.leaderless:
        yield Error(
            f"No {name} leads: docs/run/runbook.md#no-leader says what stands still.",
            hint=f"Start `manage.py {name}` under a process manager, or `--once` by a schedule.",
        )


@subject.check
def clocks(facts: Processes) -> Iterator[CheckMessage]:
    """Check that the processes' clocks are the database's."""
    for name, ahead in sorted(facts.clocks.items()):
        yield Warn(
            f"The database's clock is {ahead:+.0f} s from that of {name}.",
            hint="Correct the host's NTP (`chronyc tracking`).",
        )
