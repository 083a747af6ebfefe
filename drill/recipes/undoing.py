"""Undo, at every point of the workflow, with every fault of the partners on the way back."""

from collections.abc import Iterator
from typing import Any

from drill.recipes import Running, recipe
from drill.recipes.messages import REFUSED, REPLIES, held_back
from drill.recipes.partners import ask_for_undo, fired, held
from drill.waiting import let_pass, wait_for

# what takes something back, by partner
BACK = (("inventory", "undo"), ("payment", "cancel"), ("payment", "refund"), ("shipping", "undo"))
TAKEN = "SELECT count(*) FROM orchestration_task WHERE reference = ANY(%s)"
DONE_AND_UNDONE = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND s.direction = 'undo' AND s.process_state = 'processed'
"""


def undo_all(run: Running) -> None:
    """Have every order of the run undone."""
    wait_for(lambda: run.stack.count(TAKEN, run.orders) == len(run.orders), "all are taken", 30)
    ask_for_undo(run, run.orders)


def script(run: Running, faults: list[dict[str, Any]]) -> None:
    """Put faults in force."""
    run.stack.sandbox("/faults", {"faults": faults}, "PUT")


@recipe
def undo(
    run: Running, *, often: float = 0.4, lasts: float = 4, do: str = "", **fault: Any
) -> Iterator[None]:
    """Every order is undone, wherever it is; a fault befalls what takes things back.

    `do` is a fault that befalls the calls to do as well, from the beginning. No order is finished
    before, as its confirmation, which cannot be taken back, is held.
    """
    forth = {key: value for key, value in fault.items() if key != "fault"}
    with held(run, "notification"):
        if do:
            whole = {"partner": "*", "action": "*", "probability": often, "fault": do, **forth}
            script(run, [whole])
        try:
            yield
            if fault and not do:
                parts = {"probability": often, **fault}
                script(run, [{"partner": who, "action": act, **parts} for who, act in BACK])
            undo_all(run)
            if fault or do:
                wait_for(lambda: fired(run) >= 5, "the fault befalls some requests", 20)
                let_pass(lasts)
        finally:
            run.stack.sandbox("/faults", method="DELETE")
    back = run.stack.count
    wait_for(lambda: back(DONE_AND_UNDONE, run.orders) >= 5, "things are taken back", 60)


@recipe
def undo_in_flight(run: Running, *, seconds: float = 0.8) -> Iterator[None]:
    """Every order is undone while its payment is under way."""
    slow = {"partner": "payment", "action": "*", "fault": "slow", "seconds": seconds}
    with held(run, "notification"):
        script(run, [slow])
        try:
            yield
            undo_all(run)
            assert fired(run), "no payment was under way"
        finally:
            run.stack.sandbox("/faults", method="DELETE")


@recipe
def replies_after_undo(run: Running, *, at_least: int = 8) -> Iterator[None]:
    """Replies are held back; the orders are undone; then the replies come."""
    refused = run.stack.count(REFUSED)
    with held(run, "notification"):
        yield
        taken = held_back(run, at_least=at_least)
        undo_all(run)
        run.quiet()
        with run.stack.redis() as client:
            client.rpush(REPLIES, *taken)
        wait_for(lambda: run.stack.count(REFUSED) >= refused + len(taken), "they are refused", 20)
