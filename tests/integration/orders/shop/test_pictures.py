"""A product's picture: checked where it is typed in, and harmless where it is missing."""

import pytest
from django.test import Client
from whitenoise.middleware import WhiteNoiseMiddleware

from orders.models import Product
from tests.support.operators import browser, person
from tests.support.shop import fill_cart, products

pytestmark = pytest.mark.django_db


def typed(**changes):
    known = {
        "sku": "new", "slug": "new", "name": "New", "kind": "Tea", "summary": "Good.",
        "description": "Good.", "price": "900", "picture": "tea-mint", "position": "0", "active": "on",
        "stock": "plenty", "tax_class": "standard", "delivery": "parcel",
    }  # fmt: skip
    return known | changes


@pytest.mark.parametrize(
    "picture", ["tea-mnit", "../icon", "Tea-Mint", "tea-mint.svg", "", "a\nb", "/etc/passwd"]
)
def test_unknown_picture_is_refused_in_the_admin(picture):
    admin = browser(person("boss", is_staff=True, is_superuser=True))
    answer = admin.post("/admin/orders/product/add/", typed(picture=picture))
    assert answer.status_code == 200
    assert "picture" in answer.context["adminform"].form.errors
    assert not Product.objects.exists()


def test_known_picture_is_taken_in_the_admin():
    admin = browser(person("boss", is_staff=True, is_superuser=True))
    assert admin.post("/admin/orders/product/add/", typed()).status_code == 302
    assert Product.objects.get().picture == "tea-mint"


@pytest.fixture
def _manifest(settings, tmp_path):
    """Have the shop's own storage, for which nothing was collected."""
    from sasweb.settings import STORAGES

    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = STORAGES


@pytest.mark.parametrize(
    ("name", "immutable"),
    [("sas.0a1b2c3d4e5f.css", True), ("sas.css", False), ("admin/js/jquery.min.js", False)],
)
def test_names_with_a_hash_are_cached_for_ever(settings, name, immutable):
    test = WhiteNoiseMiddleware(lambda _: None, settings=settings).immutable_file_test
    assert bool(test(f"/srv/static/{name}", f"/static/{name}")) is immutable


@pytest.mark.usefixtures("_manifest")
@pytest.mark.parametrize("picture", ["no-such", "../../no-such", "…"])
def test_missing_picture_takes_no_page_down(picture, caplog):
    products()
    Product.objects.update(picture=picture)
    client = Client()
    fill_cart(client)
    for page in ("/", "/products/slug-0/", "/cart/"):
        assert client.get(page).status_code == 200
    assert "Did collectstatic run?" in caplog.text
