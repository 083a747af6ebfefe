"""The shop's two hooks into the engine: recording orders and receiving status messages."""

from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from orchestration import submission
from orchestration.api import Progress, Status, StatusKind, StepState, TaskState, progress, submit
from orchestration.models import Submission, Task
from orders.charges import Discount, charge
from orders.lifecycle import placement, snapshots
from orders.lifecycle.message import EMAIL_WORKFLOW, WORKFLOW, fingerprint, public
from orders.lifecycle.placement import OtherContent
from orders.lifecycle.requests import Change, ChangeRequest
from orders.lifecycle.status import receive
from orders.models import DiscountCode, Order, OrderLine, Placement
from tests.support.shop import message

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shelf")]


def post(placed, **changes):
    submit("process_order", reference=str(placed.order), data={**placed.as_json(), **changes})


def test_batch_of_orders_query_count(django_assert_max_num_queries):
    for _ in range(20):
        post(message())
    with django_assert_max_num_queries(17):
        assert submission.take(100) == 20
    assert Order.objects.count() == OrderLine.objects.count() == Task.objects.count() == 20


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"total": 1}, "but the lines add up to 2000"),
        ({"lines": []}, "list of 1 to 50"),
        ({"email": None}, "email is empty"),
        (
            {"lines": [{"sku": "ghost", "name": "G", "unit_price": 1000, "quantity": 2}]},
            "unknown product ghost",
        ),
        ({"order": str(uuid4())}, "does not match the reference"),
    ],
)
def test_invalid_order_is_set_aside_without_blocking_others(changes, reason):
    bad, good = message(), message()
    post(bad, **changes)
    post(good)
    submission.take(100)
    assert reason in Submission.objects.get(reference=str(bad.order)).reason
    assert list(Order.objects.values_list("id", flat=True)) == [good.order]


def test_fingerprint_is_that_of_the_tasks_data():
    placed = message()
    post(placed)
    submission.take(100)
    assert Order.objects.get().fingerprint == fingerprint(public(placed.as_json()))
    assert fingerprint(Task.objects.get(workflow=WORKFLOW).data) == Order.objects.get().fingerprint


def test_placing_is_idempotent_by_id_and_content():
    placed = message()
    first = placement.place(placed, "a", offer={"total": 1})
    again = placement.place(placed, "a")
    assert (first.order, first.created_at, first.offer) == (
        placed.order,
        again.created_at,
        again.offer,
    )
    with pytest.raises(OtherContent):
        placement.place(placed, "b")
    assert placement.placed(placed.order) == "a"
    assert placement.placed(uuid4()) is None
    assert Submission.objects.filter(workflow=WORKFLOW).count() == 1


def order(status="received", number=1) -> UUID:
    placed = message()
    post(placed)
    submission.take(1)
    Order.objects.filter(id=placed.order).update(status=status, status_number=number)
    return placed.order


def snapshot(state):
    return Progress(
        state=state,
        created_at=timezone.now(),
        ended_at=None,
        overdue=False,
        undoable=True,
        steps=(),
    )


STATES = {
    "completed": TaskState.PROCESSED,
    "failed": TaskState.ERROR,
    "undoing": TaskState.UNDOING,
}


def status(reference, number, kind, progress=None, **detail):
    """Return a message; of a kind that says where the task stands, with a snapshot of that."""
    if progress is None and kind in STATES:
        progress = snapshot(STATES[kind])
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


def test_status_messages_query_count(django_assert_num_queries):
    known = [order() for _ in range(3)]
    with django_assert_num_queries(1):
        receive([status(known[0], 2, "undoing"), status(known[1], 2, "completed")])
    assert [state(key) for key in known] == [("undoing", 2), ("confirmed", 2), ("received", 1)]


def test_status_messages_out_of_order_keep_the_latest():
    which = order()
    receive(
        [status(which, 4, "completed"), status(which, 2, "failed"), status(which, 3, "resumed")]
    )
    assert state(which) == ("confirmed", 4)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_status_message_that_is_not_newer_changes_nothing(number):
    which = order("confirmed", 3)
    receive([status(which, number, "failed")])
    assert state(which) == ("confirmed", 3)


def test_later_message_about_a_step_has_the_status_of_an_earlier_one():
    """Two workers deliver: the later message may come first."""
    which = order("undoing", 2)
    stopped = snapshot(TaskState.ERROR)
    receive([status(which, 4, "step", stopped)])
    receive([status(which, 3, "failed", stopped)])
    assert state(which) == ("failed", 4)


def emails():
    return Submission.objects.filter(workflow=EMAIL_WORKFLOW).count()


def test_email_of_a_status_is_posted_once_in_whichever_order_messages_come():
    undone = snapshot(TaskState.UNDONE)
    first, second = order("undoing", 2), order("undoing", 2)
    before = emails()
    for number, kind in ((3, "undone"), (4, "step")):
        receive([status(first, number, kind, undone)])
    for number, kind in ((4, "step"), (3, "undone")):
        receive([status(second, number, kind, undone)])
    assert emails() - before == 2


def test_status_message_of_an_unknown_order_is_ignored():
    receive([status(uuid4(), 1, "received")])
    assert not Order.objects.exists()


def test_status_messages_from_the_engine(run):
    placed = message()
    submit("process_order", reference=str(placed.order), data=placed.as_json(), reply_to="shop")
    run.go()
    row = Order.objects.get(id=placed.order)
    assert row.status == "confirmed"
    known = progress(WORKFLOW, str(placed.order))
    # what was not needed has no more than a template, which messages are without
    steps = [
        replace(step, request={}) if step.state is StepState.SKIPPED else step
        for step in known.steps
    ]
    assert snapshots.of(row) == replace(known, data={}, steps=tuple(steps))


def order_with_request():
    """Return an order with a pending request, and the request's id."""
    which, request = order(), uuid4()
    Order.objects.filter(id=which).update(
        asked=ChangeRequest(id=request, act=Change.CANCEL).as_json()
    )
    return which, str(request)


def asked(which):
    return Order.objects.get(id=which).request


@pytest.mark.parametrize("number", [2, 9])
def test_status_message_ends_its_request_regardless_of_number(number):
    (yes, accepted), (no, refused), (third, _) = (order_with_request() for _ in range(3))
    receive([status(which, 5, "step") for which in (yes, no, third)])
    receive(
        [
            status(yes, number, "undoing", request=accepted),
            status(no, number, "refused", request=refused, refusal="IRREVERSIBLE"),
            status(third, number, "resumed", request=str(uuid4())),
        ]
    )
    assert asked(yes) is None
    assert asked(no).refused == "IRREVERSIBLE"
    assert asked(third).pending


def test_snapshot_is_that_of_the_latest_message():
    which = order()
    pending, undone = snapshot(TaskState.PENDING), snapshot(TaskState.UNDONE)
    receive([status(which, 3, "undone", undone), status(which, 2, "step", pending)])
    receive([status(which, 2, "step", pending)])
    assert snapshots.of(Order.objects.get(id=which)) == undone


def test_placement_of_a_submission_set_aside_or_closed():
    placed = message()
    placement.place(placed, "a")
    for kind, aside in (("set_aside", "refused"), ("closed", "closed")):
        receive([status(placed.order, 0, kind)])
        assert Placement.objects.get(order=placed.order).aside == aside


def test_use_of_a_code_is_given_back_once_its_order_is_closed():
    DiscountCode.objects.create(code="SPRING", percent=1000)
    sent = message()
    charges = charge(sent.lines, discount=Discount(code="SPRING", percent=1000), rates={})
    placement.place(replace(sent, charges=charges, total=1800), "a")
    for kind, used in (("set_aside", 1), ("closed", 0)):
        receive([status(sent.order, 0, kind)])
        assert DiscountCode.objects.get().used == used
