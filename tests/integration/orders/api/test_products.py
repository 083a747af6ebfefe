"""The catalogue in the API."""

import pytest

from orders.management.commands.seed import add_products
from orders.models import Product
from orders.models.product import Availability
from tests.support.applications import Caller, application
from tests.support.shop import products

pytestmark = pytest.mark.django_db


@pytest.fixture
def till():
    return Caller(application("till", "status:read")[1])  # any token may read what all can see


def test_catalogue_is_listed_page_by_page(till):
    products(5)
    Product.objects.filter(sku="sku-1").update(active=False)
    Product.objects.filter(sku="sku-2").update(stock=Availability.NONE)
    seen, address = [], "products?limit=2"
    while address:
        page = till.get(address.removeprefix("http://testserver/api/")).json()
        assert len(page["products"]) <= 2
        seen += page["products"]
        address = page["next"]
    assert [item["sku"] for item in seen] == ["sku-0", "sku-2", "sku-3", "sku-4"]
    assert [item["availability"] for item in seen] == ["plenty", "none", "plenty", "plenty"]
    assert {key: seen[0][key] for key in ("unit_price", "currency", "page")} == {
        "unit_price": 1000,
        "currency": "EUR",
        "page": "http://testserver/products/slug-0/",
    }


def test_names_are_in_each_language(till):
    add_products()
    names = {item["sku"]: item["names"] for item in till.get("products").json()["products"]}
    assert names["tea-mint"] == {"en": "Garden Mint", "de": "Gartenminze"}
    assert len(names) == Product.objects.count()


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "limit=x", "cursor=%00", "shelf=tea"])
def test_wrong_parameter_is_refused(till, query):
    answer = till.get(f"products?{query}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert answer.json()["errors"][0]["field"] == query.partition("=")[0]
