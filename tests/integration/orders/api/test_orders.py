"""The API's orders: placing by key, reading, listing, cancelling, limits and problems."""

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import pytest
from django.db import connection, connections
from django.test import Client

from orchestration import submission
from orchestration.applications import tokens
from orchestration.models import Application, StatusMessage, Submission, Task
from orchestration.testing.outcomes import later
from orders.lifecycle.message import WORKFLOW
from orders.models import Order, Placement, Product
from tests.support.applications import Caller, application, new_order
from tests.support.shop import NOT_NEEDED, answer, ask, carry_out, finish_all, products

pytestmark = pytest.mark.django_db


@pytest.fixture
def till():
    products()
    return Caller(application("till")[1])


def problem(response):
    """Check that a response is a problem; return its status and code."""
    assert response["Content-Type"] == "application/problem+json", response.text
    body = response.json()
    assert body["status"] == response.status_code
    assert body["what_to_do"]
    return response.status_code, body["code"]


def placed(till, key="key-1", **changes):
    response = till.place(key, new_order(**changes))
    assert response.status_code == 202, response.text
    return response.json()


def test_placed_order_is_recorded_as_one_of_the_checkout(till):
    order = placed(till)
    assert (order["total"], order["currency"]) == (2000, "EUR")
    assert order["lines"][0]["name"] == "Product 0"
    assert order["url"] == f"http://testserver/api/orders/{order['id']}"
    submission.take(10)
    row = Order.objects.get()
    assert (str(row.id), row.total, row.name) == (order["id"], 2000, "Ada Lovelace")
    assert Task.objects.get(workflow=WORKFLOW).reply_to == "till"
    assert "Rue de Lyon" in Client().get(order["page"]).text
    assert "Rue de Lyon" not in Client().get(f"/orders/{row.id}/").text


def test_order_is_completed_for_application_and_shop(till):
    order = placed(till)
    seen = [till.get(f"orders/{order['id']}").json()]
    carry_out()
    seen.append(till.get(f"orders/{order['id']}").json())
    finish_all()
    seen.append(till.get(f"orders/{order['id']}").json())
    assert [order["status"] for order in seen] == ["received", "received", "completed"]
    assert seen[2]["tracking"] == "TRK1"
    lines = [{"sku": "sku-0", "quantity": 2}]
    assert seen[2]["parcels"] == [
        {"state": "sent", "carrier": "shipping", "tracking": "TRK1", "lines": lines}
    ]
    assert seen[1]["parcels"] == []
    states = {step["name"]: step["state"] for step in seen[2]["steps"]}
    assert {name for name, state in states.items() if state == "skipped"} == NOT_NEEDED
    assert {states[name] for name in states.keys() - NOT_NEEDED} == {"processed"}
    assert {name: value for name, value in seen[2].items() if name in order} == order
    messages = StatusMessage.objects.order_by("id").values_list("reply_to", "kind")
    assert list(messages) == [("till", "received"), ("till", "completed")]
    assert Order.objects.get().status == "confirmed"


def test_payment_that_waits_for_its_customer_is_shown_to_who_may_act(run, till):
    transfer = {"holder": "K", "iban": "DE00", "bic": "B", "reference": "R", "amount": 2000}
    accepted = {"id": "pi_1", "page": "https://bank.test/1", "transfer": transfer}
    run.script("payment.authorize", later(accepted, id="pi_1", look=600))
    order = placed(till, payment_method="customer_balance")
    assert till.get(f"orders/{order['id']}").json()["payment_due"] is None
    run.go()
    due = till.get(f"orders/{order['id']}").json()["payment_due"]
    assert due == {"page": "https://bank.test/1", "transfer": transfer}
    till_row = Application.objects.get(name="till")
    _, token = tokens.issue(till_row, label="reads", scopes=["orders:read"], by="ada")
    reader = Caller(token)
    assert reader.get(f"orders/{order['id']}").json()["payment_due"] is None


def test_place_repeated_returns_the_same_response(till):
    first = till.place()
    Product.objects.update(price=9900, active=False)
    submission.take(10)
    finish_all()
    again = till.place()
    assert (again.status_code, again.json()) == (202, first.json())
    assert Order.objects.count() == 1
    assert till.place("key-2").status_code == 409


def test_place_with_a_used_key_and_other_content(till):
    placed(till)
    assert problem(till.place(order=new_order(quantity=3))) == (422, "key_used")
    assert Placement.objects.count() == 1


def test_fairness_key_is_prefixed_by_the_application(till):
    first = till.place(order=new_order(fairness_key="import"))
    assert first.status_code == 202
    assert set(Submission.objects.values_list("fairness_key", flat=True)) == {"till/import"}
    again = till.place(order=new_order())  # not part of the content
    assert again.json() == first.json()
    till.place("key-2")
    assert set(Submission.objects.values_list("fairness_key", flat=True)) == {"till/import", "till"}
    refused = till.place("key-3", order=new_order(fairness_key="a/b"))
    assert problem(refused) == (422, "invalid")


def test_priority_is_stored(till):
    first = till.place(order=new_order(priority=-3))
    assert first.status_code == 202
    assert Submission.objects.get(workflow="process_order").priority == -3
    again = till.place(order=new_order(priority=0))  # not part of the content
    assert again.json() == first.json()


def test_priority_above_the_limit_is_refused(till):
    refused = till.place(order=new_order(priority=1))
    assert problem(refused) == (422, "invalid")
    [error] = refused.json()["errors"]
    assert error["field"] == "priority"
    Application.objects.update(max_priority=5)
    assert till.place(order=new_order(priority=5)).status_code == 202
    assert problem(till.place("key-2", order=new_order(priority=6))) == (422, "invalid")
    assert [row.priority for row in Submission.objects.filter(workflow="process_order")] == [5]


@pytest.mark.parametrize("priority", [-11, 11, "1", True, 1.5])
def test_priority_that_is_invalid_is_refused(till, priority):
    Application.objects.update(max_priority=100)
    assert problem(till.place(order=new_order(priority=priority))) == (422, "invalid")
    assert not Placement.objects.exists()


def test_key_used_by_two_applications_places_two_orders(till):
    other = Caller(application("other")[1])
    assert placed(till)["id"] != placed(other)["id"]


@pytest.mark.django_db(transaction=True)
def test_parallel_places_with_one_key_make_one_order(till):
    def post(_):
        try:
            return till.place()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(post, range(50)))
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.text for answer in answers}) == 1
    posted = Submission.objects.filter(workflow=WORKFLOW)
    assert (Placement.objects.count(), posted.count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_parallel_places_with_other_contents_make_one_order(till):
    def post(quantity):
        try:
            return till.place(order=new_order(quantity=quantity))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(post, [1, 2] * 12))
    totals = {answer.json()["total"] for answer in answers if answer.status_code == 202}
    assert len(totals) == 1
    assert {problem(answer) for answer in answers if answer.status_code != 202} == {
        (422, "key_used")
    }
    assert Placement.objects.get().offer["total"] in totals


def test_place_with_an_outdated_expected_total(till):
    Product.objects.filter(sku="sku-0").update(price=1500)
    refused = till.place(order=new_order(expected_total=2000))
    assert problem(refused) == (409, "price_changed")
    assert (refused.json()["total"], Placement.objects.count()) == (3000, 0)
    assert placed(till, expected_total=3000)["total"] == 3000


def test_place_with_unknown_products_names_them(till):
    Product.objects.filter(sku="sku-1").update(active=False)
    lines = [{"sku": f"sku-{number}", "quantity": 1} for number in (0, 1, 9)]
    refused = till.place(order=new_order(lines=lines))
    assert problem(refused) == (409, "not_sold")
    assert [error["field"] for error in refused.json()["errors"]] == ["lines.1.sku", "lines.2.sku"]


def test_unknown_parameter_is_refused(till):
    refused = till.get("orders", limits=3)
    assert problem(refused) == (422, "invalid")
    assert refused.json()["errors"][0]["field"] == "limits"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"email": "ada"}, "email"),
        ({"email": None}, "email"),
        ({"payment_method": "pm_gold"}, "payment_method"),
        ({"lines": []}, "lines"),
        ({"lines": [{"sku": "sku-0", "quantity": 0}]}, "lines.0.quantity"),
        ({"lines": [{"sku": "sku-0", "quantity": 100}]}, "lines.0.quantity"),
        ({"lines": [{"sku": "sku-0", "quantity": True}]}, "lines.0.quantity"),
        ({"lines": [{"sku": "sku-0", "quantity": "2"}]}, "lines.0.quantity"),
        ({"expected_total": True}, "expected_total"),
        ({"expected_total": "2000"}, "expected_total"),
        ({"lines": [{"sku": "sku-0", "quantity": 1}] * 2}, "lines.1.sku"),
        ({"lines": [{"sku": "sku-0", "quantity": 1, "unit_price": 1}]}, "lines.0.unit_price"),
        ({"total": 1}, "total"),
        ({"address": {**new_order()["address"], "country": "XX"}}, "address.country"),
        ({"address": {**new_order()["address"], "city": " "}}, "address.city"),
        ({"address": {**new_order()["address"], "name": "A\0B"}}, "address.name"),
        ({"expected_total": -1}, "expected_total"),
    ],
)
def test_invalid_order_is_refused_by_field(till, changes, field):
    response = till.place(order=new_order(**changes))
    assert problem(response)[0] == 422
    assert [error["field"] for error in response.json()["errors"]] == [field]
    assert not Placement.objects.exists()


def test_place_without_a_valid_key(till):
    for key in (None, "", "a b", "é", "x" * 201):
        headers = {} if key is None else {"Idempotency_Key": key}
        assert problem(till.post("orders", new_order(), **headers)) == (400, "key_missing")


def test_body_that_is_not_json_or_too_large(till):
    headers = {**till.headers, "Idempotency-Key": "k"}

    def send(body, kind="application/json"):
        return till.client.post("/api/orders", body, content_type=kind, headers=headers)

    assert problem(send("{")) == (400, "malformed_json")
    assert problem(send('{"email": "\\ud800"}'))[0] == 422
    assert problem(send("[]"))[0] == 422
    assert problem(send("a=1", "application/x-www-form-urlencoded")) == (415, "not_json")
    assert problem(send("x" * 300_000)) == (413, "too_large")


def test_list_pages_do_not_shift_with_new_orders(till):
    other = Caller(application("other")[1])
    placed(other)
    made = [placed(till, f"key-{number}")["id"] for number in range(5)]
    submission.take(10)
    seen, address, query = [], "orders", {"limit": 2}
    while True:
        page = till.get(address, **query).json()
        seen += page["orders"]
        placed(till, f"late-{len(seen)}")
        if page["next"] is None:
            break
        address, query = page["next"].partition("/api/")[2], {}
    assert [order["id"] for order in seen] == made[::-1]
    assert seen[0].keys() == {"id", "number", "status", "placed_at", "total", "currency", "url"}


def test_list_query_count(till, django_assert_num_queries):
    for count in (1, 20):
        for number in range(count):
            placed(till, f"{count}-{number}")
        submission.take(100)
        with django_assert_num_queries(4):  # token, rate, placements, states
            till.get("orders")


@pytest.mark.parametrize("cursor", ["x", "1-2", "é", f"1-{UUID(int=1)}", "0" * 99])
def test_cursor_that_is_invalid_is_refused(till, cursor):
    assert problem(till.get("orders", cursor=cursor)) == (422, "invalid")


def test_cancel_repeated_undoes_the_order_once(till):
    order = placed(till)["id"]
    assert problem(till.post(f"orders/{order}/cancel")) == (409, "not_taken_yet")
    carry_out()
    seen = till.get(f"orders/{order}").json()
    assert (seen["cancellable"], seen["cancellation"], seen["ended_at"]) == (True, None, None)
    first = till.post(f"orders/{order}/cancel", {"reason": "ordered twice"})
    asked = (first.json()["status"], first.json()["cancellable"], first.json()["cancellation"])
    assert (first.status_code, asked) == (202, ("received", False, "asked"))
    again = till.post(f"orders/{order}/cancel")
    assert (again.status_code, again.json()) == (202, first.json())
    carry_out()
    ended = till.post(f"orders/{order}/cancel")
    assert (ended.status_code, ended.json()["status"]) == (202, "undone")
    assert ended.json()["cancellation"] is None
    assert ended.json()["ended_at"] > seen["placed_at"]
    event = Task.objects.get(workflow=WORKFLOW).events.get(kind="undo")
    assert (event.actor, event.reason) == ("application till", "ordered twice")


def test_cancel_of_a_completed_order(till):
    order = placed(till)["id"]
    carry_out()
    finish_all()
    refused = till.post(f"orders/{order}/cancel")
    assert problem(refused) == (409, "cannot_be_cancelled")


def test_cancel_refused_by_the_engine(till):
    order = placed(till)["id"]
    carry_out()
    assert till.post(f"orders/{order}/cancel").status_code == 202
    finish_all()  # before the engine handles the request
    assert till.get(f"orders/{order}").json()["cancellation"] == "asked"
    carry_out()
    seen = till.get(f"orders/{order}").json()
    assert (seen["status"], seen["cancellation"]) == ("completed", "refused")


def test_order_with_a_declined_card_has_its_code(till):
    order = placed(till)["id"]
    carry_out()
    answer(ask(), authorize_payment="card_declined")
    seen = till.get(f"orders/{order}").json()
    (trouble,) = seen["trouble"]
    assert (seen["status"], trouble["code"]) == ("failed", "card_declined")
    last = StatusMessage.objects.filter(reply_to="till").latest("number")
    assert (last.kind, last.detail["steps"][0]["code"]) == ("action_needed", "card_declined")


@pytest.mark.django_db(transaction=True)
def test_unavailable_database_is_a_problem_with_retry_after(till, monkeypatch):
    connection.close()
    with monkeypatch.context() as nowhere:
        nowhere.setitem(connection.settings_dict, "HOST", "/nowhere")
        response = till.place()
    assert problem(response) == (503, "database_away")
    assert response["Retry-After"] == "30"
    assert till.place().status_code == 202


def test_internal_error_is_a_problem(till):
    placed(till)
    Placement.objects.update(offer={"total": "much"})
    assert problem(till.place()) == (500, "failed")


def test_rate_limit_of_a_token(till):
    Application.objects.update(rate=2)
    first = till.get("orders")
    assert (first["RateLimit-Limit"], first["RateLimit-Remaining"]) == ("2", "1")
    assert 1 <= int(first["RateLimit-Reset"]) <= 60
    till.get("orders")
    refused = till.get(f"orders/{uuid4()}")
    assert problem(refused) == (429, "too_often")
    assert int(refused["Retry-After"]) <= 60
    assert refused["RateLimit-Remaining"] == "0"


def test_rate_limit_of_unknown_tokens():
    stranger = Caller("sas_wrong")
    codes = [stranger.get("orders").status_code for _ in range(61)]
    assert codes == [401] * 60 + [429]


@pytest.mark.parametrize(
    ("method", "address", "expected"),
    [
        ("put", "/api/orders", (405, "method_not_allowed")),
        ("get", "/api/orders/", (404, "not_found")),
        ("post", "/api/nothing", (404, "not_found")),
        ("get", "/api/orders/17", (404, "not_found")),
        ("post", "/api/orders/%0A/cancel", (404, "not_found")),
    ],
)
def test_unknown_address_is_a_problem(till, method, address, expected):
    response = getattr(till.client, method)(address, headers=till.headers)
    assert problem(response) == expected


@pytest.mark.parametrize("email", ["O'Brien@example.org", "x@münchen.example", "a&b@example.org"])
def test_address_that_the_checkout_takes_is_taken(till, email):
    assert till.place(order=new_order(email=email)).status_code == 202


@pytest.mark.parametrize("email", ["a@localhost", "a@[127.0.0.1]", "a..b@example.org"])
def test_address_that_no_letter_arrives_at_is_refused(till, email):
    assert problem(till.place(order=new_order(email=email))) == (422, "invalid")


def test_total_above_what_can_be_paid_is_refused(till):
    Product.objects.update(price=1_000_000)
    lines = [{"sku": "sku-0", "quantity": 99}, {"sku": "sku-1", "quantity": 1}]
    assert problem(till.place(order=new_order(lines=lines))) == (422, "too_much")
    assert till.place(order=new_order(quantity=99)).status_code == 202
