"""Deploys with old code beside new code: every accepted order is processed in the end.

Old code lacks something of the new release: the reader a field, the registry a workflow, the model a
column of the table.
"""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client

from orchestration import api, registry, submission
from orchestration.cluster.debounce import Pauses
from orchestration.dead_letters.actions import DeadLetterFilter, close, retry
from orchestration.models import Submission, Task
from orders.lifecycle import access, placement, tracking
from orders.lifecycle import submission as recording
from orders.lifecycle.message import EMAIL_WORKFLOW, WORKFLOW, Message, fingerprint
from orders.models import Order, Product
from tests.support.shop import finish_all, inform, message, products, verdict, visit

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _shop(db, monkeypatch):
    products()
    monkeypatch.setattr(submission, "_paused", Pauses())


def place():
    """Place an order, as the web does; return its id."""
    order = uuid4()
    sent = message(order, confirmation=placement.confirmation(order, "Ada", 2000, "EUR"))
    placement.place(sent, fingerprint(sent.as_json()))
    return order


def take():
    """Have the submission process take what is due, and inform the shop."""
    while submission.take(100):
        pass
    inform()


def end_waits():
    """Make every retry due and end every pause."""
    Submission.objects.update(retry_at=F("retry_at") - timedelta(hours=1))
    submission._paused.clear()


def waits(order, reason):
    """Return whether an order waits for that reason, which its customer does not see."""
    row = Submission.objects.get(reference=str(order))
    shown = verdict(visit(Client(), access.link(order)))
    return (
        row.refused_at is None
        and row.retry_at is not None
        and reason in row.reason
        and shown == tracking.RECEIVED
    )


def all_processed(*orders):
    """Return whether the orders are processed, and no submission is left."""
    end_waits()
    take()
    finish_all()
    done = Task.objects.filter(workflow=WORKFLOW, state="processed", reference__in=map(str, orders))
    return done.count() == len(orders) and not Submission.objects.exists()


@pytest.fixture
def new_web(monkeypatch):
    """Have the web post a new field with each order."""
    as_json = Message.as_json
    monkeypatch.setattr(Message, "as_json", lambda self: {**as_json(self), "wrapping": "plain"})


def new_workers(monkeypatch):
    """Have the submission process know the new field."""
    read = recording.read

    def with_field(data):
        return read({name: part for name, part in data.items() if name != "wrapping"})

    monkeypatch.setattr(recording, "read", with_field)


def test_new_field_unknown_to_the_workers(new_web, monkeypatch):
    order = place()
    take()
    assert waits(order, "fields unknown to this release: wrapping")
    new_workers(monkeypatch)
    assert all_processed(order, place())


def test_new_field_known_to_the_workers_first(monkeypatch):
    new_workers(monkeypatch)
    assert all_processed(place())


def test_new_messages_do_not_delay_old_ones(monkeypatch):
    as_json = Message.as_json
    old = [place() for _ in range(3)]
    with monkeypatch.context() as web:
        web.setattr(Message, "as_json", lambda self: {**as_json(self), "wrapping": "plain"})
        new = [place() for _ in range(3)]
    take()
    assert {str(order) for order in old} <= set(Task.objects.values_list("reference", flat=True))
    assert all(waits(order, "wrapping") for order in new)
    new_workers(monkeypatch)
    assert all_processed(*old, *new)


def test_new_workflow_unknown_to_the_workers(monkeypatch):
    new = replace(registry.workflows[EMAIL_WORKFLOW], name="write_to_customer")
    data = {"number": "7", "email": "ada@example.org", "mail": {"subject": "s", "text": "t"}}
    with monkeypatch.context() as web:
        web.setitem(registry.workflows, new.name, new)
        api.submit(new.name, reference="7", data=data)
        order = place()
    take()
    assert Submission.objects.get().problem == "unknown"
    assert Task.objects.filter(reference=str(order)).exists()
    monkeypatch.setitem(registry.workflows, new.name, new)
    assert all_processed(order)
    assert Task.objects.get(workflow=new.name).state == "processed"


def test_new_column_unknown_to_the_workers():
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE orders_order ADD COLUMN wrapping text NOT NULL")
        order = place()
        take()
        assert waits(order, 'null value in column "wrapping"')
        assert "Bern" not in Submission.objects.get(reference=str(order)).reason  # no row's content
        cursor.execute("ALTER TABLE orders_order ALTER COLUMN wrapping SET DEFAULT 'plain'")
        assert all_processed(order, place())


@pytest.mark.parametrize("error", [TypeError("record() takes 2"), MemoryError(), KeyError("x")])
def test_orders_wait_for_a_release_with_a_failing_record_hook(monkeypatch, error):
    def record(_):
        raise error

    with monkeypatch.context() as bad:
        bad.setitem(
            registry.workflows, WORKFLOW, replace(registry.workflows[WORKFLOW], record=record)
        )
        orders = [place() for _ in range(8)]
        take()
        assert waits(orders[0], type(error).__name__)
    assert not Order.objects.exists()
    assert all_processed(*orders)


def test_order_of_a_removed_product_is_set_aside_until_it_is_back():
    order = place()
    Product.objects.filter(sku="sku-0").update(sku="gone")
    take()
    assert verdict(visit(Client(), access.link(order))) == tracking.SET_ASIDE
    Product.objects.filter(sku="gone").update(sku="sku-0")

    retry(DeadLetterFilter(kind="submission", name=WORKFLOW), by="ann")
    Product.objects.filter(sku="sku-0").update(sku="gone")
    take()
    close(DeadLetterFilter(kind="submission", name=WORKFLOW), by="ann", reason="refunded by hand")
    inform()
    assert verdict(visit(Client(), access.link(order))) == tracking.CLOSED
    Product.objects.filter(sku="gone").update(sku="sku-0")
    retry(DeadLetterFilter(kind="submission", name=WORKFLOW, state="closed"), by="ann")
    assert all_processed(order)
