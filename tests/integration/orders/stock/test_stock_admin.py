"""The stock in the admin: what staff see of it, who may correct it, and what wrong input does."""

import time
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse

from orders.management.commands.seed import add_groups
from orders.models import Product, StockCorrection
from orders.stock.levels import begin_reading
from tests.support.operators import browser, person
from tests.support.page import page, query_count
from tests.support.stock import on_shelves, read

pytestmark = pytest.mark.django_db
LIST, PRODUCT = "/admin/orders/stocklevel/", "/admin/orders/product/sku-0/change/"
FORM = f"{LIST}correct/?product=sku-0&warehouse=main"
LEVELS = {
    "sku-0": {"main": [12, 3], "south": [0, 0]}, "sku-1": {"main": [3, 0]}, "sku-2": {"main": [0, 2]},
}  # fmt: skip


@pytest.fixture
def owner():
    return browser(person("boss", is_staff=True, is_superuser=True))


@pytest.fixture
def levels():
    read(time.time() - 181, LEVELS)


def sent(**changes):
    known = {"id_": str(uuid4()), "expected": 15, "kind": "counted", "units": 12, "reason": "May."}
    return {**known, **changes}


def links(answer):
    return [link["href"] for link in page(answer).all("a[href]")]


@pytest.mark.usefixtures("levels")
def test_list_of_products_has_the_units_on_hand_with_marks(owner):
    shown = page(owner.get("/admin/orders/product/"))
    assert shown.texts(".field-units") == ["12", "3 low", "0 out"]
    low = page(owner.get("/admin/orders/product/?left=low"))
    assert low.texts(".field-units") == ["3 low", "0 out"]
    by_units = page(owner.get("/admin/orders/product/?o=5"))
    assert by_units.texts(".field-units") == ["0 out", "3 low", "12"]


def test_stock_that_was_never_read_is_not_known(owner):
    assert set(page(owner.get("/admin/orders/product/")).texts(".field-units")) == {"not known"}
    assert page(owner.get(PRODUCT)).all("tr[data-warehouse]") == []


@pytest.mark.usefixtures("levels")
def test_product_shows_each_warehouse_and_how_old_that_is(owner):
    main, south = page(owner.get(PRODUCT)).all("tr[data-warehouse]")
    assert (main["data-warehouse"], south["data-warehouse"]) == ("main", "south")
    assert [cell.text for cell in main.cells()][1:4] == ["12", "3", "3 minutes ago"]
    assert [cell.text for cell in south.cells()][1:3] == ["0 out", "0"]
    assert main.only("a")["href"] == FORM


@pytest.mark.usefixtures("levels")
def test_stock_is_filtered_by_warehouse_and_by_what_is_low(owner):
    def shown(query):
        listed = page(owner.get(f"{LIST}{query}"))
        return list(zip(listed.texts(".field-sku"), listed.texts(".field-warehouse"), strict=True))

    assert len(shown("")) == 4
    assert shown("?warehouse=south") == [("sku-0", "south")]
    assert shown("?left=low") == [("sku-0", "south"), ("sku-1", "main"), ("sku-2", "main")]
    assert shown("?left=out&warehouse=main") == [("sku-2", "main")]


@pytest.mark.usefixtures("levels")
def test_queries_are_independent_of_the_number_of_levels(owner):
    paths = (LIST, PRODUCT, "/admin/orders/product/", "/admin/orders/stockcorrection/")
    few = [query_count(owner, path) for path in paths]
    read(time.time(), {"sku-0": {f"house-{number}": [1, 1] for number in range(20)}})
    for number in range(4):
        owner.post(FORM.replace("main", f"house-{number}"), sent(expected=2))
    assert StockCorrection.objects.count() == 4
    assert [query_count(owner, path) for path in paths] == few


def test_count_is_sent_once_and_noted_with_who_and_why(owner, run, port):
    begin_reading("now")
    run.go()
    form = page(owner.get(FORM)).only("form#correct")
    hidden = {name: form.only(f'input[name="{name}"]')["value"] for name in ("id_", "expected")}
    assert hidden["expected"] == "15"
    for _ in range(2):
        answer = owner.post(FORM, {**hidden, "kind": "counted", "units": "12", "reason": "May."})
        assert (answer.status_code, answer["Location"]) == (302, f"{PRODUCT}#stock")
    assert page(owner.get(PRODUCT)).only("[data-correction]")["data-correction"] == "asked"
    run.go()
    made = page(owner.get(PRODUCT)).only("[data-correction]")
    assert made["data-correction"] == "made"
    assert all(part in made.text for part in ("12 in main, was 15", "boss", "May."))
    assert on_shelves()[0] == ("sku-0", "main", 12, 0)
    history = owner.get("/admin/orders/product/sku-0/history/").text
    assert history.count("Counted on the shelf: 12 in main. May.") == 1
    (row,) = StockCorrection.objects.all()
    assert row.by.username == "boss"
    shown = owner.get(f"/admin/orders/stockcorrection/{row.id}/change/").text
    assert reverse("ops:started", args=["correct_stock", row.id]) in shown


@pytest.mark.parametrize(
    "wrong",
    [{"units": "-1"}, {"units": "x"}, {"units": "1000001"}, {"reason": " "}, {"kind": "stolen"},
     {"kind": "received", "units": "0"}, {"kind": "removed", "units": "0"}, {"id_": "x"},
     {"expected": "-1"}, {"expected": ""}]
)  # fmt: skip
@pytest.mark.usefixtures("levels")
def test_wrong_correction_is_refused_and_changes_nothing(owner, wrong):
    assert owner.post(FORM, sent(**wrong)).status_code == 422
    assert not StockCorrection.objects.exists()


@pytest.mark.parametrize("query", ["", "?product=x&warehouse=main", "?product=sku-0&warehouse=x"])
@pytest.mark.usefixtures("levels")
def test_form_of_an_unknown_product_or_warehouse_is_not_there(owner, query):
    assert owner.get(f"{LIST}correct/{query}").status_code == 404
    assert owner.post(f"{LIST}correct/{query}", sent()).status_code == 404


@pytest.mark.usefixtures("levels")
def test_goods_may_come_to_a_warehouse_that_had_none(owner):
    address = f"{LIST}correct/?product=sku-1&warehouse=south"
    section = page(owner.get("/admin/orders/product/sku-1/change/")).only("#stock")
    assert address in [link["href"] for link in section.all("a[href]")]
    assert owner.get(address).status_code == 200
    owner.post(address, sent(kind="received", units=7, expected=0))
    assert StockCorrection.objects.get().warehouse == "south"


@pytest.mark.parametrize(
    ("role", "sees", "corrects"),
    [("viewer", 403, 403), ("operator", 200, 403), ("lead", 200, 200), ("admin", 200, 200)],
)
@pytest.mark.usefixtures("levels")
def test_roles_that_see_and_correct_the_stock(role, sees, corrects):
    add_groups()
    member = person("member", is_staff=True)
    member.groups.add(Group.objects.get(name=role))
    client = browser(member)
    assert client.get(LIST).status_code == sees
    assert client.get(FORM).status_code == corrects
    assert client.post(FORM, sent()).status_code == (302 if corrects == 200 else 403)
    assert StockCorrection.objects.exists() is (corrects == 200)
    if sees == 200:
        assert (FORM in links(client.get(PRODUCT))) is (corrects == 200)
        assert ("field-act" in client.get(LIST).text) is (corrects == 200)


@pytest.mark.usefixtures("levels")
def test_levels_and_corrections_are_changed_by_no_form(owner):
    row = StockCorrection.objects.create(
        id=uuid4(), product=Product.objects.get(sku="sku-0"), warehouse="main", kind="received",
        units=1, reason="x",
    )  # fmt: skip
    for path in (f"{LIST}add/", f"/admin/orders/stockcorrection/{row.id}/delete/"):
        assert owner.get(path).status_code == 403
