"""What customers do with subscriptions in the shop: once, with clear answers, and only with their own."""

from uuid import uuid4

import pytest
from django.test import Client

from orders.models import DatedPrice, Placement, Product, ShippingPrice, Subscription
from orders.subscriptions import acts
from orders.subscriptions.days import today
from tests.support.customers import customer
from tests.support.page import page
from tests.support.shop import DETAILS, posted
from tests.support.shop_role import Visitor, make_role
from tests.support.subscriptions import from_now, subscribed

pytestmark = pytest.mark.django_db
FORM = "/products/slug-0/subscribe/"
FILLED = {**DETAILS, "region": "", "quantity": "2", "weeks": "4"}


@pytest.fixture
def ada():
    return customer()


@pytest.fixture
def mine(ada):
    owner = ada.get("/account/").wsgi_request.user
    return subscribed(owner)


def at(row, act=""):
    return f"/account/subscriptions/{row.id}/{act}"


def token_for(client, **changes):
    """Return the token as the page has it, once other values are typed in."""
    shown = client.get(FORM)
    typed = {**FILLED, **changes, "token": page(shown).only("#token")["value"]}
    answer = client.post(f"{FORM}sums/", typed, headers={"HX-Request": "true"})
    return page(answer).only("#token")["value"]


def begin(client, **changes):
    token = changes.pop("token", None) or token_for(client, **changes)
    return client.post(FORM, {**FILLED, **changes, "token": token})


def verdict(client, row):
    return page(client.get(at(row))).only("#verdict")


def wrong(response):
    return {
        name: errors[0].code for name, errors in response.context["form"].errors.as_data().items()
    }


def test_product_that_is_subscribable_offers_it():
    links = [link["href"] for link in page(Client().get("/products/slug-0/")).all("a")]
    assert f"{FORM}?weeks=2" in links
    assert "subscribe" not in Client().get("/products/slug-2/").text
    Product.objects.filter(sku="sku-0").update(stock="none")
    assert "subscribe" not in Client().get("/products/slug-0/").text


def test_visitor_signs_in_first_and_comes_back():
    answer = Client().get(f"{FORM}?weeks=4")
    assert answer["Location"] == f"/account/sign-in/?next={FORM}%3Fweeks%3D4"


def test_customer_subscribes_once_and_sees_it(ada):
    token = token_for(ada)
    first = begin(ada, token=token)
    again = begin(ada, token=token)
    (row,) = Subscription.objects.all()
    assert first["Location"] == again["Location"] == at(row)
    assert (row.quantity, row.weeks, row.price, row.next_on) == (2, 4, 1000, from_now(28))
    assert Placement.objects.count() == row.orders.count() == len(posted("begun")) == 1
    shown = page(ada.get(at(row)))
    assert shown.only("#verdict")["data-next"] == from_now(28).isoformat()
    assert f"/orders/{row.orders.get().order}/" in [link["href"] for link in shown.all("a")]
    assert at(row) in [link["href"] for link in page(ada.get("/account/subscriptions/")).all("a")]


def test_order_leads_to_its_subscription(run, ada):
    begin(ada)
    run.go()
    row = Subscription.objects.get()
    order = row.orders.get().order
    assert page(ada.get(f"/orders/{order}/")).only("a#subscription")["href"] == at(row)


@pytest.mark.parametrize("change", ["price", "quantity", "shipping"])
def test_other_price_than_shown_is_shown_first(ada, change):
    token = token_for(ada)
    if change == "price":
        DatedPrice.objects.create(product_id="sku-0", starts_at="2020-01-01T00:00Z", price=1100)
    if change == "shipping":
        ShippingPrice.objects.create(country="CH", price=300)
    quantity = "3" if change == "quantity" else "2"
    answer = begin(ada, token=token, quantity=quantity)
    assert (answer.status_code, Subscription.objects.count()) == (422, 0)
    fresh = page(answer).only("#token")["value"]
    assert begin(ada, token=fresh, quantity=quantity).status_code == 303
    assert Subscription.objects.count() == 1


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("quantity", "0", "min_value"),
        ("quantity", "100", "max_value"),
        ("quantity", "2.5", "invalid"),
        ("quantity", "", "required"),
        ("weeks", "3", "invalid_choice"),
        ("weeks", "", "required"),
        ("payment_method", "customer_balance", "invalid_choice"),
        ("country", "XX", "invalid_choice"),
        ("postcode", "1", "invalid"),
        ("email", "nobody", "invalid"),
    ],
)
def test_wrong_input_is_explained_and_changes_nothing(ada, field, value, code):
    answer = begin(ada, **{field: value})
    assert (answer.status_code, wrong(answer)[field]) == (422, code)
    assert not Subscription.objects.exists()
    row = subscribed(ada.get("/account/").wsgi_request.user)
    answer = ada.post(at(row, "change/"), {**FILLED, field: value})
    assert (answer.status_code, wrong(answer)[field]) == (422, code)
    row.refresh_from_db()
    assert (row.quantity, row.weeks) == (2, 2)


def test_quantity_as_the_form_reads_it_is_the_one_that_is_priced(ada):
    token = token_for(ada, quantity="2.0")
    answer = begin(ada, token=token, quantity="2.0")
    assert answer.status_code == 422
    assert begin(ada, token=page(answer).only("#token")["value"], quantity="2.0").status_code == 303
    assert Subscription.objects.get().orders.get().unit_price == 1000


@pytest.mark.parametrize("token", ["", "x"])
def test_altered_page_changes_nothing(ada, token):
    answer = ada.post(FORM, {**FILLED, "token": token})
    assert (answer.status_code, Subscription.objects.count()) == (422, 0)


@pytest.mark.parametrize("sku", ["sku-2", "sku-1"])
def test_product_without_a_subscription_has_no_form(ada, sku):
    Product.objects.filter(sku="sku-1").update(active=False)
    path = f"/products/{sku.replace('sku', 'slug')}/subscribe/"
    assert [ada.get(path).status_code, ada.post(path, FILLED).status_code] == [404, 404]


def test_token_of_another_customer_shows_nothing_of_theirs(ada):
    token = token_for(ada)
    begin(ada, token=token)
    assert begin(customer("bob@example.org"), token=token).status_code == 404


ACTS = {
    "": {}, "change/": FILLED, "skip/": {"on": ""}, "pause/": {}, "resume/": {"price": "1000"}, "end/": {},
}  # fmt: skip


@pytest.mark.parametrize("act", ACTS)
def test_subscription_is_its_customers_alone(mine, act):
    bob = customer("bob@example.org")
    for path in (at(mine, act), at(mine, act).replace(str(mine.id), str(uuid4()))):
        assert bob.post(path, ACTS[act]).status_code == (404 if act else 405)
        assert bob.get(path).status_code == (404 if act in {"", "change/"} else 405)
        guest = Client().post(path, ACTS[act])
        assert guest["Location"].startswith("/account/sign-in/")
    before = mine.next_on
    mine.refresh_from_db()
    assert (mine.state, mine.weeks, mine.next_on) == ("active", 2, before)


def test_next_one_is_skipped_once_however_often_it_is_sent(ada, mine):
    sent = {"on": mine.next_on.isoformat()}
    assert ada.post(at(mine, "skip/"), sent).status_code == 303
    again = ada.post(at(mine, "skip/"), sent)
    assert again.status_code == 409
    assert page(again).all(".strip.warning")
    assert verdict(ada, mine)["data-next"] == from_now(28).isoformat()


@pytest.mark.parametrize("on", ["", "x", "2026-13-01", "1999-01-01"])
def test_day_that_is_not_the_next_one_is_not_skipped(ada, mine, on):
    assert ada.post(at(mine, "skip/"), {"on": on}).status_code == 409
    assert verdict(ada, mine)["data-next"] == from_now(14).isoformat()


def test_more_than_half_a_year_is_not_skipped(ada, mine):
    Subscription.objects.update(next_on=from_now(180))
    assert ada.post(at(mine, "skip/"), {"on": from_now(180).isoformat()}).status_code == 409


def test_pause_and_resume(ada, mine):
    assert ada.post(at(mine, "pause/")).status_code == 303
    assert ada.post(at(mine, "pause/")).status_code == 409
    shown = page(ada.get(at(mine)))
    price = shown.only('input[name="price"]')["value"]
    Subscription.objects.update(next_on=from_now(-30))
    assert ada.post(at(mine, "resume/"), {"price": price}).status_code == 303
    assert verdict(ada, mine)["data-next"] == from_now(1).isoformat()
    assert ada.post(at(mine, "resume/"), {"price": price}).status_code == 409


@pytest.mark.parametrize("price", ["", "x", "999", "²"])
def test_subscription_resumes_only_at_the_price_that_was_shown(ada, mine, price):
    acts.pause(mine.id)
    assert ada.post(at(mine, "resume/"), {"price": price}).status_code == 409
    mine.refresh_from_db()
    assert mine.state == "paused"


def test_resuming_agrees_to_the_price_of_today(ada, mine):
    acts.pause(mine.id)
    DatedPrice.objects.create(product_id="sku-0", starts_at="2020-01-01T00:00Z", price=1500)
    ada.post(at(mine, "resume/"), {"price": "1500"})
    mine.refresh_from_db()
    assert (mine.state, mine.price) == ("active", 1500)


def test_quantity_rhythm_address_and_card_change_for_the_next_order(run, ada, mine):
    changed = {
        **FILLED,
        "quantity": "5",
        "street": "Weg 7",
        "payment_method": "pm_card_sandbox_bankApp",
    }
    assert ada.post(at(mine, "change/"), changed).status_code == 303
    Subscription.objects.update(next_on=from_now(1))
    run.wait(2 * 86_400)
    mine.refresh_from_db()
    first, second = mine.orders.order_by("on")
    assert (mine.weeks, mine.next_on) == (4, from_now(27))
    assert (first.payment_method, second.payment_method) == (
        "pm_card_visa",
        "pm_card_sandbox_bankApp",
    )
    order = page(ada.get(f"/orders/{second.order}/"))
    assert "Weg 7" in order.text
    assert order.only('[data-sum="total"]').only("dd").text == "€50.00"


def test_end_is_confirmed_by_a_letter_and_final(ada, mine):
    assert ada.post(at(mine, "end/")).status_code == 303
    assert len(posted("halted")) == 1
    for act, sent in {**ACTS, "skip/": {"on": mine.next_on.isoformat()}}.items():
        if act:
            assert ada.post(at(mine, act), sent).status_code == 409
    shown = page(ada.get(at(mine)))
    assert shown.all('form[action*="/subscriptions/"]') == []


def test_prices_and_products_that_changed_are_shown(ada, mine):
    Subscription.objects.update(new_price=1300, new_price_from=from_now(9), reason="We moved.")
    Product.objects.filter(sku="sku-0").update(stock="none")
    shown = page(ada.get(at(mine)))
    assert shown.only("[data-new-price]")["data-new-price"] == "1300"
    assert len(shown.only("div.stack").all(".strip")) == 3


def test_pages_cost_a_constant_number_of_queries(ada, mine, django_assert_max_num_queries):
    with django_assert_max_num_queries(10):
        ada.get(at(mine))
    owner = ada.get("/account/").wsgi_request.user
    for _ in range(3):
        subscribed(owner)
    with django_assert_max_num_queries(7):
        ada.get("/account/subscriptions/")


def test_too_many_changes_are_refused_for_a_while(ada, mine):
    answers = [ada.post(at(mine, "skip/"), {"on": ""}).status_code for _ in range(31)]
    assert (set(answers[:30]), answers[30]) == ({409}, 429)


@pytest.mark.parametrize("begins", [True, False])
def test_form_with_an_old_token_is_shown_again_as_it_was_filled_in(ada, mine, begins):
    ada.handler.enforce_csrf_checks = True
    typed = {**FILLED, "street": "Weg 7", "quantity": "9", "csrfmiddlewaretoken": "a" * 64}
    path = FORM if begins else at(mine, "change/")
    answer = ada.post(path, typed, headers={"Origin": "http://testserver"})
    assert answer.status_code == 422
    form = page(answer).only("form#typed")
    assert form.only("#id_street")["value"] == "Weg 7"
    assert form.only("#id_quantity")["value"] == "9"
    mine.refresh_from_db()
    assert (mine.quantity, Subscription.objects.count()) == (2, 1)


def test_customers_page_in_german(ada, mine):
    ada.post("/i18n/setlang/", {"language": "de"})
    ada.cookies["django_language"] = "de"
    assert page(ada.get(at(mine))).only("html")["lang"] == "de"
    assert "Die nächste Bestellung" in verdict(ada, mine).text


def test_public_web_process_does_all_this_in_its_role(settings):
    make_role()
    settings.FOR_STAFF = False  # as SERVES=shop says
    client = customer(client=Visitor())
    assert begin(client).status_code == 303
    row = Subscription.objects.get()
    assert client.get(at(row)).status_code == 200
    assert client.post(at(row, "skip/"), {"on": row.next_on.isoformat()}).status_code == 303
    assert client.post(at(row, "end/")).status_code == 303
    assert today() == row.orders.get().on
