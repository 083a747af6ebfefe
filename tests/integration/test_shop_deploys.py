"""Deploys in each order, with old code beside new: every order accepted is processed in the end.

Old code is a process without what the new release brings: the reader of messages without the field, the
registry without the workflow, the table with a column that it does not write.
"""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client

from orchestration import api, registry, submission
from orchestration.lasting import Pauses
from orchestration.models import Submission, Task
from orchestration.requeue import Wanted, close, retry
from orders import access, placing
from orders import submission as recording
from orders.message import LETTER, WORKFLOW, Address, Line, Message, fingerprint
from orders.models import Order, Product
from tests.shop import finish_all, inform, products

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _shop(db, monkeypatch):
    products()
    monkeypatch.setattr(submission, "_paused", Pauses())


def place():
    """Place an order, as the web does; return its id."""
    order = uuid4()
    message = Message(
        order=order,
        email="ada@example.org",
        address=Address(name="Ada", street="Rue 1", postcode="1", city="Bern", country="CH"),
        payment_method="pm_card_visa",
        currency="EUR",
        total=2000,
        lines=[Line(sku="sku-0", name="Product 0", unit_price=1000, quantity=2)],
        confirmation=placing.confirmation(order, "Ada", 2000, "EUR"),
    )
    placing.place(message, fingerprint(message.as_json()))
    return order


def take():
    """Have the submission process take what is due, and the shop hear of it."""
    while submission.take(100):
        pass
    inform()


def let_pass():
    """Have the time of every retry come, and every pause end."""
    Submission.objects.update(retry_at=F("retry_at") - timedelta(hours=1))
    submission._paused.clear()


def waits(order, reason):
    """Say whether an order waits for that reason, which its customer does not see."""
    row = Submission.objects.get(reference=str(order))
    page = Client().get(access.link(order)).text
    return (
        row.refused_at is None
        and row.retry_at is not None
        and reason in row.reason
        and "We received your order." in page
    )


def all_processed(*orders):
    """Say whether all of it is processed, and nothing posted is left."""
    let_pass()
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


def test_a_new_field_of_which_the_workers_hear_later(new_web, monkeypatch):
    order = place()
    take()
    assert waits(order, "parts that this release does not know: wrapping")
    new_workers(monkeypatch)
    assert all_processed(order, place())


def test_a_new_field_that_the_workers_know_first(monkeypatch):
    new_workers(monkeypatch)
    assert all_processed(place())


def test_new_messages_do_not_hold_up_old_ones(monkeypatch):
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


def test_a_new_workflow_of_which_the_workers_hear_later(monkeypatch):
    new = replace(registry.workflows[LETTER], name="write_to_customer")
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


def test_a_new_column_that_the_workers_do_not_write_yet():
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE orders_order ADD COLUMN wrapping text NOT NULL")
        order = place()
        take()
        assert waits(order, 'null value in column "wrapping"')
        assert "Bern" not in Submission.objects.get(reference=str(order)).reason  # no row's content
        cursor.execute("ALTER TABLE orders_order ALTER COLUMN wrapping SET DEFAULT 'plain'")
        assert all_processed(order, place())


@pytest.mark.parametrize("error", [TypeError("record() takes 2"), MemoryError(), KeyError("x")])
def test_a_release_whose_record_raises(monkeypatch, error):
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


def test_an_order_of_a_product_that_is_gone_is_refused_until_it_is_back():

    order = place()
    Product.objects.filter(sku="sku-0").update(sku="gone")
    take()
    assert "our staff is looking into it" in Client().get(access.link(order)).text
    Product.objects.filter(sku="gone").update(sku="sku-0")

    retry(Wanted(kind="submission", name=WORKFLOW), by="ann")
    Product.objects.filter(sku="sku-0").update(sku="gone")
    take()
    close(Wanted(kind="submission", name=WORKFLOW), by="ann", reason="refunded by hand")
    inform()
    page = Client().get(access.link(order)).text
    assert "We could not take your order. Nothing was charged." in page
    assert "our staff is looking into it" not in page
    Product.objects.filter(sku="gone").update(sku="sku-0")
    retry(Wanted(kind="submission", name=WORKFLOW, state="closed"), by="ann")
    assert all_processed(order)
