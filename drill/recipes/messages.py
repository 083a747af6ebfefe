"""Messages that come late, twice, or in another order; and very many of them."""

from collections.abc import Iterator
from contextlib import suppress

from drill.recipes import Running, recipe
from drill.recipes.partners import held
from drill.waiting import wait_for

REPLIES = "sas:inbox:scheduler"
LOOK = b"look"
WIDE = 100  # requests to an agent at the same time
WINDOW = 'SELECT "window" FROM orchestration_policy WHERE agent = %s'
EXPIRED = "SELECT count(*) FROM orchestration_attempt WHERE outcome = 'expired'"
REFUSED = "SELECT count(*) FROM orchestration_event WHERE kind = 'refused'"


def held_back(run: Running, *, at_least: int) -> list[bytes]:
    """Stop the schedulers until so many replies lie unread, and take them all away.

    How many are under way when it stops is chance: it goes on, and is stopped again, until it fits.
    """

    def unread() -> list[bytes]:
        found = client.lrange(REPLIES, 0, -1)
        return [message for message in found if isinstance(message, bytes) and message != LOOK]

    def stop_and_look() -> list[bytes]:
        with run.stack.frozen("work-scheduler"):
            with suppress(AssertionError):
                wait_for(lambda: len(unread()) >= at_least, "replies lie unread", 1.5)
                taken = unread()
                client.delete(REPLIES)
                return taken
            return []

    with run.stack.redis() as client:
        return wait_for(stop_and_look, f"{at_least} replies lie unread", 30)


@recipe
def replies_out_of_order(run: Running, *, at_least: int = 8) -> Iterator[None]:
    """The schedulers read the replies last first."""
    taken = held_back(run, at_least=at_least)
    assert len(taken) > 1, "there is no order to change"
    with run.stack.redis() as client:
        client.lpush(REPLIES, *taken)  # the first goes behind the others
    yield


@recipe
def replies_late(run: Running, *, at_least: int = 8) -> Iterator[None]:
    """Replies are held back until their steps have been given up and done again; then they come."""
    expired, refused = run.stack.count(EXPIRED), run.stack.count(REFUSED)
    taken = held_back(run, at_least=at_least)
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
    """An agent is held while very many orders arrive; nothing expires for waiting.

    Then windows are wider than a drill's, as a backlog needs, so that it is done in minutes.
    """
    (before,) = run.stack.sql(WINDOW, agent)[0]
    waiting = (
        "SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id"
        " WHERE t.reference = ANY(%s) AND s.agent = %s AND s.failure_count > 0"
    )
    with held(run, agent):
        yield
        failed = run.stack.count(waiting, run.orders, agent)
        assert not failed, f"{failed} steps failed while they only waited"
        run.stack.policy(window=WIDE)
    run.quiet()
    run.stack.policy(window=before)
