"""Messages that arrive late, repeatedly or in another order, and large backlogs."""

import json
from collections.abc import Iterator
from contextlib import suppress

from drill.recipes import Running, recipe
from drill.recipes.partners import held
from drill.waiting import wait_for

REPLIES = "sas:inbox:scheduler"
DOORBELL = b"look"
WIDE = 100  # the window while a backlog is processed
WINDOW = 'SELECT "window" FROM orchestration_policy WHERE agent = %s'
EXPIRED = """
SELECT count(*) FROM orchestration_attempt a
JOIN unnest(%s::bigint[], %s::int[]) AS sent (step, number) ON (a.step_id, a.number) = (step, sent.number)
WHERE a.outcome = 'expired'
"""
REFUSED = "SELECT count(*) FROM orchestration_event WHERE kind = 'refused'"


def withhold_replies(run: Running, *, at_least: int) -> list[bytes]:
    """Freeze the schedulers until enough replies are unread; remove and return them.

    The number of requests in flight is random, so this repeats until there are enough, with pauses in
    which the schedulers send new requests.
    """

    def unread() -> list[bytes]:
        queue = client.lrange(REPLIES, 0, -1)
        return [message for message in queue if isinstance(message, bytes) and message != DOORBELL]

    def freeze_and_take() -> list[bytes]:
        with run.stack.frozen("work-scheduler"):
            with suppress(AssertionError):
                wait_for(lambda: len(unread()) >= at_least, "replies are unread", 1.5)
                taken = unread()
                client.delete(REPLIES)
                return taken
            return []

    with run.stack.redis() as client:
        return wait_for(freeze_and_take, f"{at_least} replies are unread", 30, pause=0.5)


@recipe
def replies_out_of_order(run: Running, *, at_least: int = 8) -> Iterator[None]:
    """Reverse the order of the unread replies."""
    taken = withhold_replies(run, at_least=at_least)
    assert len(taken) > 1, "a single reply has no order"
    with run.stack.redis() as client:
        client.lpush(REPLIES, *taken)  # this reverses them
    yield


@recipe
def replies_late(run: Running, *, at_least: int = 8) -> Iterator[None]:
    """Withhold replies until their steps have expired and were repeated; then deliver them."""
    refused = run.stack.count(REFUSED)
    taken = withhold_replies(run, at_least=at_least)
    # these attempts and no others: a reply whose attempt has not expired is accepted, however late
    replies = [json.loads(reply) for reply in taken]
    sent = [[reply[name] for reply in replies] for name in ("step", "attempt")]
    wait_for(
        lambda: run.stack.count(EXPIRED, *sent) == len(taken), "their steps expire", 30, pause=0.2
    )
    with run.stack.redis() as client:
        client.rpush(REPLIES, *taken)
    yield
    wait_for(
        lambda: run.stack.count(REFUSED) >= refused + len(taken), "they are refused", 10, pause=0.2
    )


@recipe
def backlog(run: Running, *, agent: str = "payment") -> Iterator[None]:
    """Hold an agent while many orders arrive; no waiting step expires.

    Afterwards windows are wider than usual, so that the backlog is processed within minutes.
    """
    (before,) = run.stack.sql(WINDOW, agent)[0]
    waiting = (
        "SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id"
        " WHERE t.reference = ANY(%s) AND s.agent = %s AND s.failure_count > 0"
    )
    with held(run, agent):
        yield
        failed = run.stack.count(waiting, run.orders, agent)
        assert not failed, f"{failed} waiting steps failed"
        run.stack.policy(window=WIDE)
    run.quiet()
    run.stack.policy(window=before)
