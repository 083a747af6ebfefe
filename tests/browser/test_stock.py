"""The stock in the admin, as staff see and correct it."""

import time

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User

from orders.models import StockCorrection
from tests.support.shop import products
from tests.support.stock import read

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
CORRECT = "/admin/orders/stocklevel/correct/?product=sku-0&warehouse=main"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_stock_is_accessible_and_fits(here, scheme, width):
    page = here("admin", color_scheme=scheme, viewport={"width": width, "height": 800})
    User.objects.update(is_staff=True, is_superuser=True)
    products()
    read(
        time.time(),
        {"sku-0": {"main": [12, 3], "a house far away": [0, 0]}, "sku-1": {"main": [3, 0]}},
    )
    for path in ("product/", "product/sku-0/change/", "stocklevel/", "stockcorrection/", CORRECT):
        address = path if path == CORRECT else f"/admin/orders/{path}"
        assert page.goto(address).status == 200
        report = Axe().run(page)
        assert report.violations_count == 0, f"{path}: {report.generate_report()}"
        assert page.evaluate(WIDE) <= 0, path


def test_goods_are_counted_on_a_form_that_starts_from_the_product(here):
    page = here("admin")
    User.objects.update(is_staff=True, is_superuser=True)
    products()
    read(time.time(), {"sku-0": {"main": [12, 3]}})
    page.goto("/admin/orders/product/sku-0/change/")
    page.get_by_role("link", name="Correct main").click()
    page.get_by_role("button", name="Correct the stock").click()
    assert page.locator(".errornote").count() == 3
    page.get_by_label("Counted on the shelf").check()
    page.get_by_label("Units").fill("14")
    page.get_by_label("Reason").fill("The sheet of May.")
    page.get_by_role("button", name="Correct the stock").click()
    page.locator('[data-correction="asked"]').wait_for()
    row = StockCorrection.objects.get()
    assert (row.kind, row.units, row.expected) == ("counted", 14, 15)
    assert ["422" in problem for problem in page.problems] == [True]  # the empty form
