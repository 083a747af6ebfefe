"""The shop as customers use it: by mouse and keyboard, at several widths, without JavaScript.

Its web process has a database role without a right on any table of the engine.
"""

import re
from urllib.error import HTTPError
from urllib.request import urlopen

import psycopg2
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from drill.verdict import check, verdict
from drill.waiting import wait_for
from tests.browser.people import create_account, fill_checkout, order, order_without_scripts

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.timeout(180)]
PLACE = re.compile("Place the order")
ORDERS = "SELECT count(*) FROM orders_order"
UNDONE = "SELECT count(*) FROM orders_order WHERE id::text = %s AND status = 'undone'"
DECLINED = "pm_card_visa_chargeDeclined"
ADDRESS = {"name": "Ada", "street": "12 Way", "postcode": "10435", "city": "Cork"}


ROLE = "shop_web"
READS = "SELECT has_table_privilege(%s, 'orchestration_task', 'SELECT')::int"


@pytest.fixture(scope="module", autouse=True)
def _the_shop_alone(stack):
    """Have the web process serve the shop alone, as docs/run/install.md says."""
    stack.sql(f"CREATE ROLE {ROLE} LOGIN")
    for command in ("grant_shop", "grant_application"):
        stack.python("manage", command, ROLE)
    assert stack.count(READS, ROLE) == 0
    url = f"postgresql://{ROLE}@/sas?host={stack.sockets}"
    with stack.replaced("web", DATABASE_URL=url, SERVES="shop"):
        wait_for(lambda: _status(stack, "/readyz") == 200, "the shop answers", 30)
        yield
    wait_for(lambda: _status(stack, "/login/") == 200, "the whole web answers", 30)


def _status(stack, path):
    try:
        with urlopen(f"http://localhost:{stack.port}{path}", timeout=5) as answer:
            return answer.status
    except HTTPError as refused:
        return refused.code
    except OSError:
        return 0


@pytest.mark.parametrize("path", ["/ops/", "/admin/", "/api/orders", "/login/", "/metrics"])
def test_shop_alone_serves_no_page_of_the_engine(stack, path):
    assert _status(stack, path) == 404
    assert _status(stack, "/") == 200


def add(page, nth=0):
    page.get_by_role("button", name=re.compile("^Add to cart")).nth(nth).click()
    expect(page.locator("#messages")).to_contain_text("cart")


def reach(page, locator, most=60):
    """Press Tab until an element has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if locator.evaluate("one => one === document.activeElement"):
            return
    raise AssertionError(f"{locator} cannot be reached by {most} tabs")


def test_product_filters_are_in_the_url_and_in_the_history(visit):
    page = visit()
    page.select_option("#id_kind", "Tea")
    page.wait_for_url("**/?kind=Tea")
    expect(page.locator(".product")).to_have_count(6)
    expect(page.get_by_role("status").filter(has_text="6 products")).to_be_visible()
    page.fill("#id_q", "mint")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?q=mint&kind=Tea")
    expect(page.locator(".product")).to_have_count(1)
    page.go_back()
    page.wait_for_url("**/?kind=Tea")
    expect(page.locator(".product")).to_have_count(6)
    expect(page.locator("#id_kind")).to_have_value("Tea")
    friend = visit("/?kind=Tea&price=under-10", java_script_enabled=False)
    assert friend.locator(".product").count() == 4
    friend.select_option("#id_kind", "Coffee")
    friend.get_by_role("button", name="Show").click()
    assert friend.locator(".product").count() == 2
    assert page.problems == []


def test_removed_cart_line_is_restored_by_one_key(visit):
    page = visit()
    add(page)
    page.goto("/cart/")
    page.get_by_role("button", name=re.compile("^Remove")).click()
    expect(page.locator("#cart")).to_contain_text("Your cart is empty")
    expect(page.locator("#cart-link .count")).to_contain_text("0")
    back = page.get_by_role("button", name=re.compile("^Put it back"))
    expect(back).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#cart .sum")).to_be_visible()
    expect(page.locator("#cart-link .count")).to_contain_text("1")
    assert page.problems == []


def test_country_and_code_change_the_sums_at_once(visit, stack):
    page = visit()
    fill_checkout(page)
    expect(page.locator("[data-sum=shipping] dd")).to_have_text("€9.90")
    for code, wrong in (("winter", re.compile("do not know")), ("welcome", "")):
        page.fill("[name=discount_code]", code)
        page.keyboard.press("Tab")
        expect(page.locator("#code-wrong")).to_have_text(wrong)
    expect(page.locator("[data-sum=discount]")).to_contain_text("WELCOME")
    page.select_option("[name=country]", "DE")
    expect(page.locator("[data-sum=shipping] dd")).to_have_text("€4.90")
    assert page.input_value("[name=street]") == "12 Analytical Way"
    page.fill("[name=postcode]", "10435")
    total = page.locator("[data-sum=total] dd").inner_text()
    page.get_by_role("button", name=f"Place the order · {total}").click()
    page.wait_for_url(re.compile("/orders/"))
    expect(page.locator("#verdict.good")).to_be_visible(timeout=30_000)
    expect(page.locator("[data-sum=total] dd")).to_have_text(total)
    expect(page.locator("[data-sum=discount]")).to_contain_text("WELCOME")
    assert page.problems == []
    placed = page.url.split("/orders/")[1][:36]
    stack.quiet()
    check(stack, [placed])


def test_price_change_is_shown_before_the_order(visit, stack):
    page = visit()
    before = stack.count(ORDERS)
    fill_checkout(page)
    sku, price = stack.sql("SELECT sku, price FROM orders_product ORDER BY position LIMIT 1")[0]
    stack.sql("UPDATE orders_product SET price = price + 250 WHERE sku = %s", sku)
    try:
        page.get_by_role("button", name=PLACE).click()
        expect(page.locator(".errors")).to_be_focused()
        expect(page.locator(".errors")).to_contain_text("Nothing was ordered")
        now, was = f"€{(price + 250) / 100:.2f}", f"€{price / 100:.2f}"
        expect(page.locator("main")).to_contain_text(f"now {now}, was {was}")
        assert page.input_value("[name=name]") == "Ada Lovelace"
        total = page.locator("[data-sum=total] dd").inner_text()
        page.get_by_role("button", name=f"Place the order · {total}").click()
        page.wait_for_url(re.compile("/orders/"))
        expect(page.locator("#verdict.good")).to_be_visible()
        expect(page.locator(".receipt")).to_contain_text(now)
    finally:
        stack.sql("UPDATE orders_product SET price = %s WHERE sku = %s", price, sku)
    stack.quiet()
    assert stack.count(ORDERS) == before + 1


def test_whole_purchase_by_keyboard(visit, stack):
    page = visit()
    keys = page.keyboard
    reach(page, page.get_by_role("button", name=re.compile("^Add to cart")).first)
    keys.press("Enter")
    expect(page.locator(".toast")).to_be_visible()
    page.goto("/cart/")
    reach(page, page.get_by_role("link", name="Go to checkout"))
    keys.press("Enter")
    page.wait_for_url("**/checkout/")
    reach(page, page.get_by_role("button", name=PLACE))
    keys.press("Enter")
    expect(page.locator(".errors")).to_be_focused()
    reach(page, page.locator(".errors a").first)
    keys.press("Enter")  # the summary leads to the field
    expect(page.locator("[name=name]")).to_be_focused()
    keys.type("Ada Lovelace")
    for name, text in {"email": "ada@example.org", **ADDRESS}.items():
        if name != "name":
            reach(page, page.locator(f"[name={name}]"))
            keys.type(text)
    keys.press("Enter")
    page.wait_for_url(re.compile("/orders/"))
    expect(page.locator("#verdict.good")).to_be_visible()
    placed = page.url.split("/orders/")[1][:36]
    stack.quiet()
    check(stack, [placed])


def test_repeated_submission_places_one_order(visit, stack):
    page = visit()
    before = stack.count(ORDERS)
    fill_checkout(page)
    page.focus("[name=city]")
    for _ in range(3):
        page.keyboard.press("Enter")
    # each submission aborts the navigation of the one before, on which wait_for_url would fail
    expect(page).to_have_url(re.compile("/orders/"), timeout=30_000)
    page.go_back()
    if page.get_by_role("button", name=PLACE).count():  # kept by the browser as it was
        page.get_by_role("button", name=PLACE).click()
        expect(page).to_have_url(re.compile("/orders/"), timeout=30_000)
    stack.quiet()
    assert stack.count(ORDERS) == before + 1


def test_address_fields_follow_the_country_and_keep_what_is_typed(visit):
    page = visit()
    fill_checkout(page)
    page.focus("[name=street]")  # as one who types on before the answer is there
    page.select_option("[name=country]", "ES")
    expect(page.locator("#id_region option")).to_have_count(53)
    expect(page.locator("[name=street]")).to_be_focused()
    expect(page.locator("[name=street]")).to_have_value("12 Analytical Way")
    look(page)
    page.get_by_role("button", name=PLACE).click()
    expect(page.locator(".errors")).to_be_focused()
    assert page.locator("#id_postcode").bounding_box()["y"] == pytest.approx(
        page.locator("#id_city").bounding_box()["y"], abs=1
    )
    look(page)
    page.select_option("[name=country]", "DE")
    expect(page.locator("#id_region")).to_have_count(0)
    assert [problem for problem in page.problems if " 422 " not in problem] == []


def test_printed_order_says_whose_it_is(visit, stack):
    page = visit()
    order(page)
    expect(page.locator("#verdict.good")).to_be_visible()  # nothing is replaced any more
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator(".brand")).to_be_visible()
    expect(page.locator(".seller")).to_be_visible()
    for hidden in (".nav", ".languages", ".cancel", "form"):
        for element in page.locator(hidden).all():
            expect(element).to_be_hidden()
    mark = "one => getComputedStyle(one, '::before').color"
    assert page.locator(".timeline .done").first.evaluate(mark) == "rgb(0, 0, 0)"


def test_declined_card_is_replaced_by_the_customer(visit, stack):
    page = visit()
    placed = order(page, DECLINED)
    expect(page.locator("#verdict.bad")).to_contain_text("Your card was declined")
    expect(page.locator("#announcement")).to_contain_text("Your card was declined")
    other = page.context.new_page()
    other.goto(page.url)
    reach(page, page.locator("#order-status [name=payment_method]").first)
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(page.locator("#verdict.good")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("Thank you for your order")
    other.check("#order-status [name=payment_method][value=pm_card_visa]")
    other.get_by_role("button", name=re.compile("with this card")).click()
    expect(other.locator(".strip.warning")).to_contain_text("That is done already")
    expect(other.locator("#verdict.good")).to_be_visible()
    stack.quiet()
    check(stack, [placed])
    assert stack.sandbox(f"/ledger/summary?order={placed}")[placed]["captured"] > 0
    assert page.problems == []


def test_uncorrected_declined_card_is_undone_and_reported(visit, stack):
    page = visit(java_script_enabled=False, viewport={"width": 320, "height": 800})
    within = "UPDATE orchestration_policy SET resolve_within = %s WHERE agent = 'payment'"
    stack.sql(within, 1.0)
    try:
        placed = order_without_scripts(page, DECLINED)
        wait_for(lambda: stack.count(UNDONE, placed), "the order is undone", 30)
    finally:
        stack.sql(within, 1800.0)
    page.get_by_role("link", name="See what is new").click()
    expect(page.locator("#verdict.bad")).to_contain_text("was cancelled. Nothing was charged.")
    stack.quiet()
    result = verdict(stack, [placed], ends="undone")
    assert result.good, result.troubles
    number = page.locator("h1").inner_text().removeprefix("Order ")
    subjects = [mail["subject"] for mail in stack.sandbox("/mail/messages")["messages"]]
    assert f"Your order {number} was cancelled" in subjects


def test_checkout_without_the_database_orders_nothing_until_repeated(visit, stack):
    page = visit()
    before = stack.count(ORDERS)
    fill_checkout(page)
    stack.manage("stopProcess", "postgres")
    try:
        page.get_by_role("button", name=PLACE).click()
        expect(page.locator("main")).to_contain_text("Nothing was ordered and nothing was charged")
    finally:
        stack.manage("startProcess", "postgres")
    wait_for(lambda: _answers(stack), "Postgres is back", 30)
    page.get_by_role("button", name="Send it again").click()
    page.wait_for_url(re.compile("/orders/"))
    expect(page.locator("#verdict.good")).to_be_visible(timeout=40_000)
    stack.quiet()
    assert stack.count(ORDERS) == before + 1


def _answers(stack):
    try:
        return stack.count("SELECT 1")
    except psycopg2.OperationalError:
        return False


def test_account_works_without_javascript(visit, stack):
    page = visit(java_script_enabled=False)
    create_account(page, stack, "noscript@example.org")
    page.goto("/")
    page.get_by_role("button", name=re.compile("^Add to cart")).first.click()
    page.goto("/checkout/")
    assert page.input_value("[name=email]") == "noscript@example.org"
    for name, text in ADDRESS.items():
        page.fill(f"[name={name}]", text)
    page.get_by_role("button", name=PLACE).click()
    placed = page.url.split("/orders/")[1][:36]
    stack.quiet()
    page.goto("/account/")
    expect(page.locator(".past")).to_contain_text("Confirmed")
    page.locator(".past-number").click()
    expect(page.locator("#verdict")).to_contain_text("confirmed")
    page.goto("/account/")
    page.get_by_role("button", name="Sign out").click()
    assert page.goto(f"/orders/{placed}/").status == 404
    page.goto("/account/")
    page.fill("[name=email]", "noscript@example.org")
    page.fill("[name=password]", "correct horse")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".past")).to_contain_text("Confirmed")


# 640 is 1280 at 200 %
@pytest.mark.parametrize(("scheme", "width"), [("dark", 1280), ("light", 640), ("dark", 320)])
def test_pages_of_the_shop_are_accessible(visit, stack, scheme, width):
    page = visit(color_scheme=scheme, viewport={"width": width, "height": 800})
    look(page, "/?kind=Tea", "/?q=elephant", "/account/sign-in/", "/account/sign-up/")
    page.get_by_role("button", name="Create the account").click()
    expect(page.locator(".errors")).to_be_focused()
    look(page)
    create_account(page, stack, f"{scheme}-{width}@example.org")
    fill_checkout(page, DECLINED)
    look(page)
    page.get_by_role("button", name=PLACE).click()
    expect(page.locator("#verdict.bad")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Order ")
    page.locator("#cancel summary").click()
    look(page)
    look(page, "/account/", "/account/address/", "/account/password/", "/account/second-factor/")
    page.goto("/")
    add(page)
    page.goto("/cart/")
    page.get_by_role("button", name=re.compile("^Remove")).click()
    expect(page.get_by_role("button", name=re.compile("^Put it back"))).to_be_visible()
    look(page)


def look(page, *paths):
    """Run axe over pages, or the one that is open; none may scroll sideways."""
    for path in paths or [""]:
        if path:
            page.goto(path)
        report = Axe().run(page)
        assert report.violations_count == 0, f"{path or page.url}: {report.generate_report()}"
        sideways = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert sideways <= 0, path or page.url
