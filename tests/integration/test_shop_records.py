"""The shop's two hooks into the engine: orders are recorded with their tasks, and told of them."""

from dataclasses import replace
from importlib import import_module
from uuid import UUID, uuid4

import pytest
from django.apps import apps
from django.utils import timezone

from orchestration import submission
from orchestration.api import Progress, Status, StatusKind, TaskState, progress, submit
from orchestration.models import Submission, Task
from orders import placing, snapshots
from orders.asking import Act, Asked
from orders.message import WORKFLOW, Address, Line, Mail, Message, fingerprint, public
from orders.models import Order, OrderLine, Placement
from orders.placing import OtherContent
from orders.status import receive
from tests.shop import finish_all, inform, products

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _shelf(db):
    products()


def message(order=None, **changes):
    known = {
        "order": order or uuid4(),
        "email": "ada@example.org",
        "address": Address(name="Ada", street="Rue 1", postcode="1", city="Bern", country="CH"),
        "payment_method": "pm_card_visa",
        "currency": "EUR",
        "total": 2000,
        "lines": [Line(sku="sku-0", name="Product 0", unit_price=1000, quantity=2)],
        "confirmation": Mail(subject="Yes", text="It is."),
    }
    return Message(**{**known, **changes})


def post(one, **changes):
    submit("process_order", reference=str(one.order), data={**one.as_json(), **changes})


def test_a_batch_of_orders_takes_two_inserts(django_assert_max_num_queries):
    for _ in range(20):
        post(message())
    with django_assert_max_num_queries(17):
        assert submission.take(100) == 20
    assert Order.objects.count() == OrderLine.objects.count() == Task.objects.count() == 20


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"total": 1}, "its lines add up to 2000"),
        ({"lines": []}, "between 1 and 50 lines"),
        ({"email": None}, "email is empty"),
        (
            {"lines": [{"sku": "ghost", "name": "G", "unit_price": 1000, "quantity": 2}]},
            "there is no product ghost",
        ),
        ({"order": str(uuid4())}, "is not its reference"),
    ],
)
def test_what_is_no_order_is_set_aside_and_blocks_nobody(changes, reason):
    bad, good = message(), message()
    post(bad, **changes)
    post(good)
    submission.take(100)
    assert reason in Submission.objects.get(reference=str(bad.order)).reason
    assert list(Order.objects.values_list("id", flat=True)) == [good.order]


def test_the_fingerprint_is_that_of_what_its_task_has():
    one = message()
    post(one)
    submission.take(100)
    assert Order.objects.get().fingerprint == fingerprint(public(one.as_json()))
    assert fingerprint(Task.objects.get(workflow=WORKFLOW).data) == Order.objects.get().fingerprint


def test_placing_is_idempotent_by_id_and_content():
    one = message()
    first = placing.place(one, "a", offer={"total": 1})
    again = placing.place(one, "a")
    assert (first.order, first.created_at, first.offer) == (
        one.order,
        again.created_at,
        again.offer,
    )
    with pytest.raises(OtherContent):
        placing.place(one, "b")
    assert placing.placed(one.order) == "a"
    assert placing.placed(uuid4()) is None
    assert Submission.objects.filter(workflow=WORKFLOW).count() == 1


def order(status="received", number=1) -> UUID:
    one = message()
    post(one)
    submission.take(1)
    Order.objects.filter(id=one.order).update(status=status, status_number=number)
    return one.order


def snapshot(state):
    return Progress(
        state=state,
        created_at=timezone.now(),
        ended_at=None,
        overdue=False,
        undoable=True,
        steps=(),
    )


def told(reference, number, kind, progress=None, **detail):
    return Status(
        workflow="process_order",
        reference=str(reference),
        number=number,
        kind=StatusKind(kind),
        at=timezone.now(),
        detail=detail,
        progress=progress,
    )


def state(which):
    return Order.objects.values_list("status", "status_number").get(id=which)


def test_a_batch_of_news_is_one_statement(django_assert_num_queries):
    known = [order() for _ in range(3)]
    with django_assert_num_queries(1):
        receive([told(known[0], 2, "undoing"), told(known[1], 2, "completed")])
    assert [state(one) for one in known] == [("undoing", 2), ("confirmed", 2), ("received", 1)]


def test_the_latest_of_several_news_counts_in_any_order():
    which = order()
    receive([told(which, 4, "completed"), told(which, 2, "failed"), told(which, 3, "resumed")])
    assert state(which) == ("confirmed", 4)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_older_news_change_nothing(number):
    which = order("confirmed", 3)
    receive([told(which, number, "failed")])
    assert state(which) == ("confirmed", 3)


def test_news_of_unknown_orders_are_no_error():
    receive([told(uuid4(), 1, "received")])


def test_news_travel_the_whole_way():
    one = message()
    submit("process_order", reference=str(one.order), data=one.as_json(), reply_to="shop")
    submission.take(1)
    finish_all()
    inform()
    row = Order.objects.get(id=one.order)
    assert row.status == "confirmed"
    assert snapshots.of(row) == replace(progress(WORKFLOW, str(one.order)), data={})


def asking():
    """Return an order about which something is asked, and the request's id."""
    which, request = order(), uuid4()
    Order.objects.filter(id=which).update(asked=Asked(id=request, act=Act.CANCEL).as_json())
    return which, str(request)


def asked(which):
    return Order.objects.get(id=which).request


@pytest.mark.parametrize("number", [2, 9])
def test_an_answer_ends_the_request_that_it_is_to_whatever_its_number(number):
    (yes, one), (no, other), (third, _) = asking(), asking(), asking()
    receive([told(which, 5, "step") for which in (yes, no, third)])
    receive(
        [
            told(yes, number, "undoing", request=one),
            told(no, number, "refused", request=other, refusal="IRREVERSIBLE"),
            told(third, number, "resumed", request=str(uuid4())),
        ]
    )
    assert asked(yes) is None
    assert asked(no).refused == "IRREVERSIBLE"
    assert asked(third).pending


def test_the_snapshot_is_that_of_the_latest_message():
    which = order()
    pending, undone = snapshot(TaskState.PENDING), snapshot(TaskState.UNDONE)
    receive([told(which, 3, "undone", undone), told(which, 2, "step", pending)])
    receive([told(which, 2, "step", pending)])
    assert snapshots.of(Order.objects.get(id=which)) == undone


def test_what_never_became_an_order_is_noted_on_its_placement():
    one = message()
    placing.place(one, "a")
    for kind, aside in (("set_aside", "refused"), ("closed", "closed")):
        receive([told(one.order, 0, kind)])
        assert Placement.objects.get(order=one.order).aside == aside


def test_orders_of_before_get_their_snapshots_in_batches(monkeypatch):
    migration = import_module("orders.migrations.0009_snapshots_of_orders")
    monkeypatch.setattr(migration, "BATCH", 2)
    ids = [order(number=0) for _ in range(5)]
    finish_all()
    Order.objects.update(snapshot=None)
    migration.take_snapshots(apps, None)
    for row in Order.objects.filter(id__in=ids):
        assert row.snapshot == replace(progress(WORKFLOW, str(row.id)), data={}).as_json()
        assert snapshots.of(row).state == "processed"
