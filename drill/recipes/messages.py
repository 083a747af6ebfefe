"""Messages that come late, twice, or in another order; and very many of them."""

import os
import signal
from collections.abc import Iterator

from drill.recipes import Running, recipe
from drill.recipes.partners import held
from drill.waiting import wait_for

REPLIES = "sas:inbox:scheduler"
LOOK = b"look"
EXPIRED = "SELECT count(*) FROM orchestration_attempt WHERE outcome = 'expired'"
REFUSED = "SELECT count(*) FROM orchestration_event WHERE kind = 'refused'"


def replies(run: Running, *, at_least: int) -> list[bytes]:
    """Wait until so many replies lie unread, and take them all away."""
    with run.stack.redis() as client:
        wait_for(
            lambda: int(client.llen(REPLIES)) >= at_least, f"{at_least} replies lie unread", 20
        )
        taken = client.lrange(REPLIES, 0, -1)
        client.ltrim(REPLIES, len(taken), -1)
    return [message for message in taken if isinstance(message, bytes) and message != LOOK]


@recipe
def replies_out_of_order(run: Running, *, at_least: int = 8) -> Iterator[None]:
    """The schedulers read the replies last first."""
    pid = run.stack.signal("work-scheduler", signal.SIGSTOP)
    try:
        taken = replies(run, at_least=at_least)
        assert len(taken) > 1, "there is no order to change"
        with run.stack.redis() as client:
            client.rpush(REPLIES, *reversed(taken))
    finally:
        os.kill(pid, signal.SIGCONT)
    yield


@recipe
def replies_late(run: Running, *, at_least: int = 8) -> Iterator[None]:
    """Replies are held back until their steps have been given up and done again; then they come."""
    expired, refused = run.stack.count(EXPIRED), run.stack.count(REFUSED)
    pid = run.stack.signal("work-scheduler", signal.SIGSTOP)
    try:
        taken = replies(run, at_least=at_least)
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for(
        lambda: run.stack.count(EXPIRED) >= expired + len(taken),
        "their steps expire",
        30,
        pause=0.2,
    )
    with run.stack.redis() as client:
        client.rpush(REPLIES, *taken)
    yield
    wait_for(
        lambda: run.stack.count(REFUSED) >= refused + len(taken), "they are refused", 10, pause=0.2
    )


@recipe
def backlog(run: Running, *, agent: str = "payment") -> Iterator[None]:
    """An agent is held while very many orders arrive; nothing expires for waiting."""
    waiting = (
        "SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id"
        " WHERE t.reference = ANY(%s) AND s.agent = %s AND s.failure_count > 0"
    )
    with held(run, agent):
        yield
        failed = run.stack.count(waiting, run.orders, agent)
        assert not failed, f"{failed} steps failed while they only waited"
