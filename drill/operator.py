"""Actions on many tasks, of operators, staff and customers. Run in a stack: `python -m drill.operator …`."""

import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from urllib.request import urlopen
from uuid import UUID, uuid4

import django
from django.db import transaction
from django.db.models import F

REASON = "by the drill"
PART = 100  # minor units of each order


def undo(references: Sequence[str]) -> None:
    """Undo tasks; print the references of refused ones, and the reasons."""
    from orchestration.models import Task
    from orchestration.transitions import undo as transition

    for reference in references:
        task = Task.objects.get(reference=reference)
        refusal = transition.undo(task.id, actor="drill", reason=REASON)
        if refusal is not None:
            print(f"{reference} {refusal.value}")


def hold(agents: Sequence[str]) -> None:
    """Hold agents."""
    from orchestration.transitions import holds

    for agent in agents:
        holds.hold(actor="drill", reason=REASON, agent=agent)


def release(agents: Sequence[str]) -> None:
    """Release the agents that `hold` held."""
    from orchestration.models import Hold
    from orchestration.transitions import holds

    for hold in Hold.objects.filter(agent__in=agents, until=None, actor="drill"):
        holds.release(hold.id, actor="drill", reason=REASON)


def resubmit(references: Sequence[str]) -> None:
    """Resubmit the failed steps of tasks by one bulk operation; print its id."""
    from orchestration.console import selection as dashboard_selection
    from orchestration.models import SupervisorPolicy, Task
    from orchestration.models.operation import Act
    from orchestration.operations import lifecycle
    from orchestration.people.person import Person

    # a drill acts on more than one person may alone
    SupervisorPolicy.objects.update(approve_items=None, approve_sum=None)
    actor = Person(name="drill")
    tasks = Task.objects.filter(reference__in=references)
    selection = {"tasks": [str(task) for task in tasks.values_list("id", flat=True)]}
    meaning = dashboard_selection.meaning(selection)
    operation = lifecycle.draft(Act.RESUBMIT, selection, meaning, actor=actor)
    refusal = lifecycle.confirm(operation.id, meaning, actor=actor, reason=REASON, rate=500)
    assert refusal is None, refusal.value
    print(operation.id)


def catch_up(names: Sequence[str]) -> None:
    """Create a schedule as it is after an outage: some of its due times, one each minute, have passed."""
    from orchestration.api import schedule
    from orchestration.database import clock
    from orchestration.models import Schedule

    name, count = names
    passed = timedelta(minutes=int(count))
    start = clock.database_now().replace(microsecond=0) - timedelta(days=1)
    every = {"every": 60, "start_at": start, "overlap": "allow", "catch_up": "all"}
    with transaction.atomic():
        schedule(name, workflow="drill_report", **every)
        Schedule.objects.filter(name=name).update(
            due_at=F("due_at") - passed, look_at=F("look_at") - passed
        )


def refund(orders: Sequence[str]) -> None:
    """Pay a part of each order back."""
    from orders.lifecycle import refunds

    for order in orders:
        refunds.refund(UUID(order), PART, REASON, id_=uuid4(), by=None)


def send_back(orders: Sequence[str]) -> None:
    """Ask for one unit of each order to be sent back."""
    from orders.lifecycle import returns
    from orders.models import OrderLine

    for order in orders:
        line = OrderLine.objects.filter(order=order).first()
        assert line, order
        returns.ask(UUID(order), {line.sku: 1}, "other", id_=uuid4())


def exchange(orders: Sequence[str]) -> None:
    """Have one unit of each order exchanged for the same: asked for, arrived and inspected."""
    from orders.demo import afterwards
    from orders.lifecycle.snapshots import of
    from orders.models import Order

    for order in Order.objects.filter(id__in=orders):
        progress = of(order)
        assert progress, order
        assert afterwards.exchange(order.id, progress), order


def remove(orders: Sequence[str]) -> None:
    """Remove one unit of each order, as its customer does."""
    from orders.lifecycle import queries, removing

    for order in orders:
        details = queries.details(UUID(order))
        assert details, order
        units = removing.removable(details)
        refusal = removing.remove(UUID(order), {next(iter(units)): 1}, id_=uuid4())
        assert refusal is None, refusal


def confirm(orders: Sequence[str]) -> None:
    """Confirm each order's payment at the bank, or transfer it, as its customer does."""
    from orders.lifecycle import queries
    from orders.lifecycle.paying import payment_due

    for order in orders:
        due = payment_due(queries.progress(UUID(order)))
        assert due, order
        with urlopen(due.page, data=b"act=confirm") as answer:  # noqa: S310 - our own sandbox
            answer.read()


def receive_goods(asked: Sequence[str]) -> None:
    """Have goods come in: a SKU, how often, and how many units each time."""
    from orders.models.stock import CorrectionKind
    from orders.stock.corrections import Correction, correct

    sku, times, units = asked
    for _ in range(int(times)):
        goods = Correction(
            id=uuid4(),
            sku=sku,
            warehouse="main",
            kind=CorrectionKind.RECEIVED,
            units=int(units),
            reason=REASON,
        )
        correct(goods, by=None, name="drill")


ACTIONS: dict[str, Callable[[Sequence[str]], None]] = {
    action.__name__: action
    for action in (
        undo, hold, release, resubmit, catch_up, refund, send_back, exchange, remove, confirm,
        receive_goods,
    )
}  # fmt: skip

if __name__ == "__main__":
    django.setup()
    ACTIONS[sys.argv[1]](sys.argv[2:])
