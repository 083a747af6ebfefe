"""Corrections of the stock: the inventory makes each once, or refuses it; staff see who, why and what."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from django.db import connections

from orchestration.api import request_undo
from orchestration.models import Alert, Submission
from orchestration.testing.outcomes import done, in_doubt, rejected
from orders.models import StockCorrection
from orders.models.stock import CorrectionKind
from orders.stock.corrections import Correction, correct
from orders.stock.levels import CORRECTING
from tests.support.sandbox import send
from tests.support.stock import on_shelves, reserve

pytestmark = pytest.mark.django_db
COUNTED, RECEIVED, REMOVED = CorrectionKind.COUNTED, CorrectionKind.RECEIVED, CorrectionKind.REMOVED


def ask(kind, units, *, expected=None, sku="sku-0", warehouse="main", id_=None):
    """Ask for a correction; return its id."""
    asked = Correction(
        id=id_ or uuid4(), sku=sku, warehouse=warehouse, kind=kind, units=units,
        expected=expected, reason="The sheet of May.",
    )  # fmt: skip
    correct(asked, by=None, name="boss")
    return asked.id


def stands(id_):
    row = StockCorrection.objects.get(id=id_)
    return row.state, row.change


def adjustments(port):
    entries = send(port, "GET", "/ledger?partner=inventory")[1]["entries"]
    return [entry["change"]["change"] for entry in entries if entry["effect"] == "adjust"]


@pytest.mark.parametrize(
    ("kind", "units", "expected", "left"),
    [
        (RECEIVED, 40, None, 55),
        (REMOVED, 2, None, 13),
        (COUNTED, 12, 15, 12),
        (COUNTED, 15, 15, 15),
    ],
)
def test_correction_is_made_and_the_level_is_read_at_once(run, port, kind, units, expected, left):
    id_ = ask(kind, units, expected=expected)
    assert stands(id_) == ("asked", None)
    run.go()
    assert stands(id_) == ("made", left - 15)
    assert on_shelves() == [("sku-0", "main", left, 0), ("sku-0", "south", 4, 0)]
    data = run.task(CORRECTING, str(id_)).progress.data
    assert (data["by"], data["reason"]) == ("boss", "The sheet of May.")


def test_what_is_reserved_lies_on_the_shelf_and_is_counted(run, port):
    reserve(port, "sku-0", 5)
    id_ = ask(COUNTED, 14, expected=15)
    run.go()
    assert stands(id_) == ("made", -1)
    assert on_shelves()[0] == ("sku-0", "main", 9, 5)


def test_count_is_refused_where_goods_left_meanwhile_and_calls_no_person(run, port):
    body = {"order": "o-1", "reservation": reserve(port, "sku-0", 5)}
    send(port, "POST", "/shipping/shipments", "s-1", body)
    id_ = ask(COUNTED, 12, expected=15)
    run.go()
    row = StockCorrection.objects.get(id=id_)
    assert (row.state, row.change) == ("refused", None)
    assert "10 of 'sku-0'" in row.refusal
    assert on_shelves()[0] == ("sku-0", "main", 10, 0)
    assert adjustments(port) == []
    assert not Alert.objects.exists()
    assert run.task(CORRECTING, str(id_)).step("adjust").error_code == "level_changed"


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"kind": REMOVED, "units": 11}, "not_on_hand"),
        ({"kind": COUNTED, "units": 4, "expected": 15}, "not_on_hand"),
        ({"kind": RECEIVED, "units": 1, "sku": "sku-2"}, "unknown_sku"),
    ],
)
def test_stock_is_never_below_zero_nor_of_what_the_inventory_does_not_know(run, port, asked, code):
    reserve(port, "sku-0", 5)
    id_ = ask(**asked)
    run.go()
    assert stands(id_) == ("refused", None)
    assert run.task(CORRECTING, str(id_)).step("adjust").error_code == code
    assert adjustments(port) == []


def test_correction_is_made_once_however_often_it_is_asked_for(run, port):
    id_ = uuid4()
    for _ in range(2):
        ask(RECEIVED, 40, id_=id_)
    run.go()
    assert (adjustments(port), StockCorrection.objects.count()) == ([40], 1)


def test_lost_answer_changes_the_stock_once(run, port):
    fault = {"partner": "inventory", "action": "adjust", "fault": "reset_after_effect", "times": 1}
    status, _ = send(port, "PUT", "/faults", body={"faults": [fault]})
    assert status == 200
    id_ = ask(RECEIVED, 40)
    run.finish()
    assert stands(id_) == ("made", 40)
    assert adjustments(port) == [40]
    assert len({call.key for call in run.calls("inventory.adjust")}) == 1


def test_correction_in_doubt_is_repeated_under_its_key(run):
    run.script("inventory.adjust", in_doubt("timeout"), done(id="adj_1", change=40))
    run.script("inventory.levels", rejected("not_read"))
    id_ = ask(RECEIVED, 40)
    run.finish()
    assert stands(id_) == ("made", 40)
    first, second = run.calls("inventory.adjust")
    assert first.key == second.key


def test_other_refusal_waits_for_an_operator_and_undone_it_was_not_made(run):
    run.script("inventory.adjust", rejected("books_closed"))
    id_ = ask(RECEIVED, 40)
    run.finish()
    assert run.task(CORRECTING, str(id_)).steps == {"adjust": "error", "read": "waiting"}
    assert stands(id_) == ("asked", None)
    request_undo(CORRECTING, str(id_), actor="ann", reason="next year", id=uuid4())
    run.go()
    assert stands(id_) == ("undone", None)


def test_level_that_cannot_be_read_after_it_leaves_the_correction_made(run):
    run.script("inventory.adjust", done(id="adj_1", change=40))
    run.script("inventory.levels", rejected("not_read"))
    id_ = ask(RECEIVED, 40)
    run.finish()
    assert (run.task(CORRECTING, str(id_)).state, stands(id_)) == ("processed", ("made", 40))


@pytest.mark.django_db(transaction=True)
def test_same_correction_asked_for_at_once_is_one():
    """Fails if the row is looked for first and then made: the second finds none either."""
    id_ = uuid4()

    def attempt(_):
        try:
            ask(RECEIVED, 40, id_=id_)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(attempt, range(8)))
    assert StockCorrection.objects.count() == 1
    assert Submission.objects.filter(workflow=CORRECTING).count() == 1
