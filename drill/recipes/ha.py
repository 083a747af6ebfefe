"""Failovers: another server takes over, by acts of the infrastructure that the recipe stands in for."""

import signal
from collections.abc import Iterator

from drill.ha.stacks import Pooled, Replicated, Watched
from drill.recipes import Running, recipe
from drill.recipes.clocks import faked
from drill.stack import Stack
from drill.waiting import pause

NOTICED = 2.0  # seconds after which the infrastructure has noticed a loss


def _pair(stack: Stack) -> Replicated:
    assert isinstance(stack, Replicated)
    return stack


def _watched(stack: Stack) -> Watched:
    assert isinstance(stack, Watched)
    return stack


@recipe
def primary_killed(run: Running, *, clock: str = "") -> Iterator[None]:
    """Kill the primary; promote its standby; have the old one return as standby by pg_rewind.

    The standby's clock is wrong by `clock`, such as "+20s".
    """
    stack = _pair(run.stack)
    if clock:
        stack.pair.standby.stop(signal.SIGINT)
        stack.pair.standby.start(**faked(clock))
        stack.pair.synchronize()
    stack.pair.primary.die()
    pause(NOTICED)
    stack.pair.promote()
    if isinstance(stack, Pooled):
        stack.pooler.repoint(stack.pair.primary.sockets)
    yield
    stack.pair.rejoin()


@recipe
def primary_hangs(run: Running) -> Iterator[None]:
    """Suspend the primary; promote its standby; wake the old one, still a primary; stop it."""
    pair = _pair(run.stack).pair
    old = pair.primary
    old.send(signal.SIGSTOP)
    pause(NOTICED)
    pair.promote()
    pause(NOTICED)
    old.send(signal.SIGCONT)
    pause(
        NOTICED
    )  # both would take writes, but for the standby that the old one's commits wait for
    old.stop(signal.SIGINT)
    yield
    pair.rejoin()


@recipe
def switchover(run: Running) -> Iterator[None]:
    """Change the servers' parts in order, twice: the old primary returns as standby each time."""
    pair = _pair(run.stack).pair
    for _ in range(2):
        pair.primary.stop(signal.SIGINT)
        pair.promote()
        pair.rejoin()
        pause(NOTICED)
    yield


@recipe
def standby_away(run: Running) -> Iterator[None]:
    """Stop the synchronous standby for a while: commits wait for it, and none is acknowledged."""
    pair = _pair(run.stack).pair
    pair.standby.stop(signal.SIGINT)
    pause(5)
    pair.standby.start()
    yield


@recipe
def pgbouncer_restarted(run: Running, *, times: int = 3) -> Iterator[None]:
    """Kill PgBouncer in transaction mode and start it again, several times."""
    stack = run.stack
    assert isinstance(stack, Pooled)
    for _ in range(times):
        stack.pooler.stop(signal.SIGKILL)
        pause(NOTICED)
        stack.pooler.start()
        pause(NOTICED)
    yield


@recipe
def sentinel_failover(run: Running, *, hangs: bool = False) -> Iterator[None]:
    """Kill the Redis master, or have it hang; Sentinel promotes its replica; the old one returns."""
    sentinels = _watched(run.stack).sentinels
    old = sentinels.master()
    if hangs:
        with sentinels.suspended(old):
            sentinels.wait_for_failover(old)
    else:
        sentinels.kill(old)
        sentinels.wait_for_failover(old)
        sentinels.start_server(old)
    yield
    sentinels.wait_for_replica(old)


@recipe
def master_returns_empty(run: Running) -> Iterator[None]:
    """Restart a Redis master without its data before Sentinel notices: its replica is empty, too."""
    sentinels = _watched(run.stack).sentinels
    old = sentinels.master()
    with run.stack.redis() as client:
        assert client.dbsize() > 0
    sentinels.kill(old)
    sentinels.start_server(old)
    yield
    assert sentinels.master() == old, "a failover kept the data"
