"""Undo at every point of the workflow, with every fault of the partners."""

from collections.abc import Iterator
from typing import Any

from drill.recipes import Running, recipe
from drill.recipes.messages import REFUSED, REPLIES, withhold_replies
from drill.recipes.partners import fired, held, request_undo, scripted, wait_for_faults
from drill.waiting import pause, wait_for

# the actions that take something back
UNDO_ACTIONS = (
    ("inventory", "undo"),
    ("payment", "cancel"),
    ("payment", "refund"),
    ("shipping", "undo"),
)
TAKEN = "SELECT count(*) FROM orchestration_task WHERE reference = ANY(%s)"
DONE_AND_UNDONE = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND s.direction = 'undo' AND s.process_state = 'processed'
"""


def undo_all(run: Running) -> None:
    """Request the undo of every order of the run."""
    wait_for(
        lambda: run.stack.count(TAKEN, run.orders) == len(run.orders), "all orders are tasks", 30
    )
    request_undo(run, run.orders)


@recipe
def undo(
    run: Running, *, often: float = 0.4, lasts: float = 4, do: str = "", **fault: Any
) -> Iterator[None]:
    """Undo every order, wherever it is, while the actions that take something back fail.

    `do` is a fault of all calls instead, from the beginning. The confirmation, which is
    irreversible, is held, so that no order is finished before.
    """
    details = {key: value for key, value in fault.items() if key != "fault"}
    chance = {"probability": often}
    before = [{"partner": "*", "action": "*", "fault": do, **chance, **details}] if do else []
    with held(run, "notification"), scripted(run.stack, *before):
        yield
        if fault and not do:
            parts = [
                {"partner": who, "action": what, **chance, **fault} for who, what in UNDO_ACTIONS
            ]
            run.stack.sandbox("/faults", {"faults": parts}, "PUT")
        undo_all(run)
        if fault or do:
            wait_for_faults(run)
            pause(lasts)
    count = run.stack.count
    wait_for(lambda: count(DONE_AND_UNDONE, run.orders) >= 5, "5 steps are undone", 60)


@recipe
def undo_in_flight(run: Running, *, seconds: float = 0.8) -> Iterator[None]:
    """Undo every order while its payment is in flight."""
    slow = {"partner": "payment", "action": "*", "fault": "slow", "seconds": seconds}
    with held(run, "notification"), scripted(run.stack, slow):
        yield
        undo_all(run)
        assert fired(run), "no payment was in flight"


@recipe
def replies_after_undo(run: Running, *, at_least: int = 8) -> Iterator[None]:
    """Withhold replies until the orders are undone; then deliver them."""
    refused = run.stack.count(REFUSED)
    with held(run, "notification"):
        yield
        taken = withhold_replies(run, at_least=at_least)
        undo_all(run)
        run.quiet()
        with run.stack.redis() as client:
            client.rpush(REPLIES, *taken)
        wait_for(lambda: run.stack.count(REFUSED) >= refused + len(taken), "they are refused", 20)
