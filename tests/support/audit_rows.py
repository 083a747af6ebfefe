"""Orders at every stage, written in bulk as the engine would leave them, for the audit's tests."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.db.models import F
from django.utils import timezone

from orchestration.agents.service_ledger import LedgerEntry
from orchestration.models import Alert, Attempt, Event, Incident, IncidentHit, Step, Task
from orchestration.models.fields import time_ordered_id
from orchestration.payloads.keys import step_key
from orders.lifecycle.message import fingerprint
from orders.lifecycle.numbers import order_number
from orders.models import Order, OrderLine, Placement

STEPS = [  # name, agent, action, after, undo, kind in the ledger, kind of its undo
    ("reserve_stock", "inventory", "reserve", [], "release", "reserve", "release"),
    ("authorize_payment", "payment", "authorize", [], "void", "authorize", "cancel"),
    ("create_shipment", "shipping", "book", ["reserve_stock", "authorize_payment"], "cancel",
     "book", "cancel"),
    ("capture_payment", "payment", "capture", ["create_shipment"], "refund", "capture", "refund"),
    ("send_confirmation", "notification", "send", ["capture_payment"], "", "send", ""),
]  # fmt: skip
STAGES = ["retried", "declined_once", "undone", "error", "waiting", *["processed"] * 15]
STATUS = {"error": (2, "failed"), "waiting": (1, "received"), "undone": (3, "undone")}
TOTAL = 2500
CAUSE = "v1-no-route"


@dataclass
class Rows:
    """Rows to write, and the entries of the partners' ledgers."""

    rows: dict = field(default_factory=dict)
    ledger: dict = field(default_factory=dict)
    orders: dict = field(default_factory=dict)  # stage → reference of its first order

    def add(self, row):
        self.rows.setdefault(type(row), []).append(row)
        return row

    def did(self, agent, reference, key, kind, amount=None, detail=None):
        entry = LedgerEntry(
            key=key, reference=reference, kind=kind, amount=amount,
            currency="eur" if amount else None, detail=detail,
        )  # fmt: skip
        self.ledger.setdefault(agent, []).append(entry)

    def write(self):
        hits = self.rows.get(IncidentHit, [])
        for model in (Placement, Order, OrderLine, Alert, Task, Step, Attempt, Event, IncidentHit):
            model.objects.bulk_create(self.rows.pop(model, []), batch_size=2000)
        for cause, count in Counter(hit.incident_id for hit in hits).items():
            Incident.objects.filter(id=cause).update(
                failures=F("failures") + count, tasks=F("tasks") + count,
                open_tasks=F("open_tasks") + count,
            )  # fmt: skip


def no_route() -> Alert:
    """Return the alert and the incident that all failed orders share."""
    cause = Incident.objects.create(fingerprint=CAUSE, version=1, title="t", state="new")
    name = f"step/process_order/create_shipment/no_route/{CAUSE}"
    return Alert.objects.create(fingerprint=name, severity="critical", title="t", incident=cause)


def orders(count, alert=None) -> Rows:
    """Make `count` orders, one stage after the other; write them with `Rows.write`."""
    made = Rows()
    for number in range(count):
        stage = STAGES[number % len(STAGES)]
        order = time_ordered_id()
        made.orders.setdefault(stage, str(order))
        _order(made, order, stage, alert)
    return made


def _order(made: Rows, order: UUID, stage, alert) -> None:
    at = timezone.now() - timedelta(hours=1)
    data = {"order": str(order), "total": TOTAL, "currency": "EUR"}
    status_number, status = STATUS.get(stage, (2, "confirmed"))
    content = fingerprint(data)
    made.add(Placement(order=order, fingerprint=content, created_at=at))
    made.add(
        Order(
            id=order, number=order_number(order), email="a@example.org", name="A", street="S",
            postcode="1", city="C", country="CH", total=TOTAL, currency="EUR",
            payment_method="pm_card_visa", status=status, status_number=status_number, fingerprint=content,
            created_at=at,
        )
    )  # fmt: skip
    made.add(OrderLine(order_id=order, sku="mug", name="Mug", unit_price=TOTAL, quantity=1))
    state = {"error": "error", "waiting": "processing", "undone": "undone"}.get(stage, "processed")
    ended = at + timedelta(seconds=60) if state in {"processed", "undone"} else None
    task = made.add(
        Task(
            id=time_ordered_id(), workflow="process_order", reference=str(order), state=state,
            data=data, reply_to="shop", owner_application="shop", statuses=status_number,
            complete_by=at + timedelta(hours=9),
            undo_at=at + timedelta(seconds=30) if stage == "undone" else None,
            created_at=at, ended_at=ended,
        )
    )  # fmt: skip
    last = {"error": 2, "waiting": 2, "undone": 4}.get(stage, 5)  # steps that were done
    for place in range(len(STEPS)):
        step = _step(made, task, place, at)
        if place < last:
            _done(made, task, step, place, at, stage)
        elif place == last and stage == "error":
            _failed(made, task, step, at, alert)
        elif place == last and stage == "waiting":
            step.process_state, step.pending_since = "pending", at
        elif stage == "undone":
            step.process_state, step.ended_at = "cancelled", at + timedelta(seconds=30)
    if stage == "undone":
        for place in range(3, -1, -1):
            _undone(made, task, place, at)


def _step(made, task, place, at, direction="do") -> Step:
    name, agent, action, after, undo, *_ = STEPS[place]
    request = {"amount": TOTAL} if agent == "payment" else {"order": task.reference}
    return made.add(
        Step(
            task=task, name=name, direction=direction, agent=agent,
            action=action if direction == "do" else undo, after=after, request=request,
            undo_action=undo if direction == "do" else "",
        )
    )  # fmt: skip


def _attempt(made, step, number, at, outcome) -> None:
    step.attempt = number
    step.dispatched_at, step.ended_at, step.outcome = at, at + timedelta(seconds=0.3), outcome
    made.add(
        Attempt(
            step=step, number=number, generation=step.generation, scheduler="s", agent="a",
            dispatched_at=at, ended_at=step.ended_at, outcome=outcome, tries=1,
        )
    )  # fmt: skip


def _done(made, task, step, place, at, stage) -> None:
    at += timedelta(seconds=2 * place)
    number = 1
    if stage == "retried" and place == 0:
        _attempt(made, step, 1, at, "expired")
        step.failure_count, number = 1, 2
        made.add(Event(task=task, step=step, kind="retry", actor="supervisor", attempt=1))
    if stage == "declined_once" and place == 1:
        _attempt(made, step, 1, at, "rejected")
        made.did("payment", task.reference, step_key(task.id, step.name, "do", 1), "none")
        step.generation, number = 2, 2
        made.add(
            Event(task=task, step=step, kind="resubmitted", actor="ada", attempt=1,
                  detail={"new_key": True})
        )  # fmt: skip
    _attempt(made, step, number, at + timedelta(seconds=0.5), "done")
    step.process_state, step.result = "processed", {"id": "x"}
    _, agent, _, _, _, kind, _ = STEPS[place]
    amount = TOTAL if agent == "payment" else None
    key = step_key(task.id, step.name, "do", step.generation)
    made.did(agent, task.reference, key, kind, amount, {"mug": 1} if place == 0 else None)


def _failed(made, task, step, at, alert) -> None:
    _attempt(made, step, 1, at + timedelta(seconds=10), "rejected")
    step.process_state, step.alert, step.error_code = "error", alert, "no_route"
    step.incident = alert.incident
    made.add(IncidentHit(incident=alert.incident, step=step))
    made.did("shipping", task.reference, step_key(task.id, step.name, "do", 1), "none")
    made.add(Event(task=task, step=step, kind="error", actor="agent", attempt=1))


def _undone(made, task, place, at) -> None:
    step = _step(made, task, place, at, "undo")
    step.after = [name for name, *_ in STEPS[2 if place < 2 else place + 1 : 4]]
    _attempt(made, step, 1, at + timedelta(seconds=32 + 2 * (3 - place)), "done")
    step.process_state, step.result = "processed", {"id": "x"}
    name, agent, *_, kind = STEPS[place]
    key = step_key(task.id, name, "undo", 1)
    if name == "authorize_payment":  # the refund came first, so nothing is left to release
        made.did(agent, task.reference, key, "none")
    else:
        made.did(agent, task.reference, key, kind, TOTAL if agent == "payment" else None)
