"""What was typed stays, in another language and with a token from before a sign-in."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from orders.models import Placement, Visitor
from sasweb.accounts.adapter import BACKEND
from tests.support.page import page
from tests.support.shop import DETAILS, declined, fill_cart, products

pytestmark = pytest.mark.django_db
OURS = {"Origin": "http://testserver"}
SPAIN = {**DETAILS, "country": "ES", "city": "Cádiz", "postcode": "11001", "region": "CA"}
ADDRESS = {"name": "Ada L", "street": "Weg 12", "postcode": "3011", "city": "Bern", "country": "CH"}
FORMS = {
    "/checkout/": SPAIN,
    "/account/address/": ADDRESS,
    "/account/sign-in/": {"email": "ada@example.org"},
    "/account/sign-up/": {"email": "ada@example.org"},
    "/account/forgotten/": {"email": "ada@example.org"},
    "/account/password/": {},
    "/orders/find/": {"number": "7KQ4M-9XD2P", "email": "ada@example.org"},
}
SECRETS = {"password": "my-secret", "again": "my-secret", "old": "my-secret"}


@pytest.fixture
def client():
    products()
    filler = Client()
    fill_cart(filler, sku_0=1)
    client = Client(enforce_csrf_checks=True)
    client.cookies.update(filler.cookies)
    client.force_login(User.objects.create_user("ada@example.org", "ada@example.org"), BACKEND)
    return client


def values(response):
    """Return what is filled in, chosen or checked in the page's form."""
    form = page(response).only("form#typed")
    fields = {field["name"]: field.attributes.get("value", "") for field in form.all("input[name]")
              if field.attributes.get("type") != "radio" or "checked" in field.attributes}  # fmt: skip
    for select in form.all("select"):
        fields |= {
            name: option["value"]
            for name in [select["name"]]
            for option in select.all("option[selected]")
        }
    return fields


@pytest.mark.parametrize("path", FORMS)
def test_form_with_an_old_token_is_shown_again_filled_in_with_a_fresh_one(client, path):
    old = {"csrfmiddlewaretoken": "a" * 64, **SECRETS, **FORMS[path]}
    answer = client.post(path, old, headers=OURS)
    assert answer.status_code == 422
    assert page(answer).only(".errors")
    seen = values(answer)
    assert {name: seen.get(name) for name in FORMS[path]} == FORMS[path]
    assert "my-secret" not in answer.text
    again = client.post(
        path, {**seen, "csrfmiddlewaretoken": seen["csrfmiddlewaretoken"]}, headers=OURS
    )
    assert again.status_code in {200, 303, 422}
    assert again.status_code != 422 or "once more" not in page(again).only(".errors").text
    assert Placement.objects.count() == (path == "/checkout/")


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
def test_form_of_another_site_is_not_shown_again(client, origin):
    answer = client.post("/checkout/", SPAIN, headers={"Origin": origin})
    assert answer.status_code == 403
    assert SPAIN["street"] not in answer.text


@pytest.mark.parametrize("path", FORMS)
def test_other_language_keeps_what_is_typed(client, path):
    form = page(client.get(path))
    button = form.only('button[lang="de"]')
    assert (button["form"], button["formaction"]) == ("typed", path)
    token = form.only("form#typed").only('input[name="csrfmiddlewaretoken"]')["value"]
    sent = {**SECRETS, **FORMS[path], "csrfmiddlewaretoken": token, "language": "de"}
    answer = client.post(path, sent, headers=OURS)
    assert answer.status_code == 200
    assert '<html lang="de">' in answer.text
    seen = values(answer)
    assert {name: seen.get(name) for name in FORMS[path]} == FORMS[path]
    assert "my-secret" not in answer.text
    assert '<html lang="de">' in client.get("/").text
    assert Placement.objects.count() == 0


def test_other_card_with_an_old_token_stays_chosen():
    products()
    plain = Client()
    order = declined(plain)
    client = Client(enforce_csrf_checks=True)
    client.cookies.update(plain.cookies)
    sent = {"attempt": "1", "payment_method": "pm_card_sandbox_replyLost"}
    answer = client.post(f"/orders/{order}/card/", sent, headers=OURS)
    assert answer.status_code == 422
    (radio,) = [
        field for field in page(answer).all('input[type="radio"]') if "checked" in field.attributes
    ]
    assert radio["value"] == "pm_card_sandbox_replyLost"
    assert page(answer).all("p.strip")


@pytest.mark.parametrize(
    ("path", "to"),
    [("/cart/add/", "/products/slug-0/"), ("/cart/change/", "/cart/"), ("/logout/", "/")],
)
def test_button_with_an_old_token_leads_back_to_its_page(client, path, to):
    sent = {"sku": "sku-0", "next": "/products/slug-0/" if "add" in path else ""}
    answer = client.post(path, sent, headers=OURS)
    assert (answer.status_code, answer["Location"]) == (303, to)
    assert page(client.get(to)).all("p.strip")
    assert list(Visitor.objects.get().content["cart"]["quantities"].items()) == [("sku-0", 1)]


def test_fields_of_a_country_come_with_any_token():
    answer = Client(enforce_csrf_checks=True).post("/address/fields/", {"country": "ES"})
    assert answer.status_code == 200
    assert re.search('id="id_region"', answer.text)
