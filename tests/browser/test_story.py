"""Orders, failures and outages in a real browser on a running stack."""

import re
import time

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from drill.process_names import WORKERS
from drill.verdict import check
from drill.waiting import wait_for
from tests.browser.people import fill_checkout, log_in, order, order_without_scripts

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.timeout(180)]


def test_order_is_confirmed_within_three_seconds_of_the_click(visit, stack):
    took, placed = [], []
    while (
        min(took, default=9) > 3 and len(took) < 4
    ):  # other processes may slow the machine for a moment
        page = visit()
        fill_checkout(page)
        clicked = time.monotonic()
        page.get_by_role("button", name=re.compile("Place the order")).click()
        expect(page.locator("#verdict.good")).to_contain_text("confirmed", timeout=30_000)
        took.append(time.monotonic() - clicked)
        assert page.problems == []
        placed.append(page.url.split("/orders/")[1][:36])
    assert min(took) <= 3
    stack.quiet()
    check(stack, placed)


def test_purchase_works_without_javascript(visit, stack):
    page = visit(java_script_enabled=False)
    placed = order_without_scripts(page)
    stack.quiet()
    page.reload()
    expect(page.locator("#verdict")).to_contain_text("confirmed")
    check(stack, [placed])


def test_double_click_and_a_second_tab_place_one_order(visit, stack):
    before = stack.count("SELECT count(*) FROM orders_order")
    page = visit()
    fill_checkout(page)
    other = page.context.new_page()
    other.goto("/checkout/")
    page.get_by_role("button", name=re.compile("Place the order")).dblclick()
    # the second click aborts the navigation of the first, on which wait_for_url would fail
    expect(page).to_have_url(re.compile("/orders/"), timeout=30_000)
    page.go_back()
    page.reload()
    stack.quiet()
    assert stack.count("SELECT count(*) FROM orders_order") == before + 1


ALERTED = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_alert a ON a.id = s.alert_id
WHERE s.task_id = %s AND a.closed_at IS NULL
"""
# open alerts about steps where none is in error any more
NEEDLESS = """
SELECT a.title FROM orchestration_alert a WHERE a.closed_at IS NULL AND a.fingerprint ^@ 'step/'
AND NOT EXISTS (
    SELECT 1 FROM orchestration_step s WHERE s.alert_id = a.id AND s.process_state = 'error'
)
"""


def test_rejection_alerts_at_once_and_one_of_two_operators_resubmits(visit, stack):
    reject = {
        "partner": "payment",
        "action": "authorize",
        "fault": "reject",
        "code": "card_declined",
    }
    stack.sandbox("/faults", {"faults": [reject]}, "PUT")
    customer = visit()
    placed = order(customer)
    expect(customer.locator("#verdict.bad")).to_contain_text("declined")
    expect(customer.locator("#verdict")).to_contain_text("Nothing was charged")
    task = str(stack.sql("SELECT id FROM orchestration_task WHERE reference = %s", placed)[0][0])
    assert stack.count(ALERTED, task) == 1

    people = {"operator": visit(), "admin": visit()}
    for name, page in people.items():
        log_in(page, stack, name)
        expect(page.locator("main")).to_contain_text("Your card was declined")
        page.goto(f"/ops/tasks/{task}/")
        page.fill("[name=reason]", f"{name} called the bank")
    stack.sandbox("/faults", {"faults": []}, "PUT")  # the cause is removed
    for page in people.values():
        page.get_by_role("button", name=re.compile("Resubmit")).click(no_wait_after=True)
    ends = {}
    for name, page in people.items():
        first = page.locator("[data-conflict]")
        again = page.get_by_text(re.compile("esubmitted", re.IGNORECASE)).first
        expect(first.or_(again).first).to_be_visible()
        ends[name] = first.count()
    assert sorted(ends.values()) == [0, 1]
    winner = next(name for name, late in ends.items() if not late)
    loser = next(name for name, late in ends.items() if late)
    expect(people[loser].locator("main")).to_contain_text(f"{winner} called the bank")

    stack.quiet()
    check(stack, [placed])
    expect(customer.locator("#verdict.good")).to_contain_text("confirmed", timeout=40_000)
    resubmitted = (
        "SELECT actor, reason FROM orchestration_event WHERE kind = 'resubmitted' AND task_id = %s"
    )
    assert stack.sql(resubmitted, task) == [(winner, f"{winner} called the bank")]
    assert stack.sql(NEEDLESS) == []


def test_threshold_changed_in_the_admin_reaches_running_processes(visit, stack):
    page = visit()
    log_in(page, stack, "admin")
    page.goto("/admin/orchestration/policy/shipping/change/")
    page.fill("[name=failure_threshold]", "0")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".errornote, .errorlist").first).to_be_visible()
    expect(page.locator("#content")).to_contain_text("threshold must be between 1 and 1000")
    page.fill("[name=failure_threshold]", "1")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**/orchestration/policy/")
    changed = time.monotonic()
    fault = {"partner": "shipping", "action": "book", "fault": "status", "status": 503}
    stack.sandbox("/faults", {"faults": [fault]}, "PUT")
    customer = visit()
    placed = order(customer)
    state = "SELECT count(*) FROM orchestration_task WHERE reference = %s AND state = 'error'"
    wait_for(lambda: stack.count(state, placed), "one failure is an error now", 10)
    assert time.monotonic() - changed < 15
    failed = """
        SELECT s.failure_count, s.attempt FROM orchestration_step s
        JOIN orchestration_task t ON t.id = s.task_id
        WHERE t.reference = %s AND s.process_state = 'error'
    """
    assert stack.sql(failed, placed) == [(1, 1)]  # with the old threshold it would be retried
    stack.sandbox("/faults", {"faults": []}, "PUT")
    page.goto("/admin/orchestration/policy/shipping/history/")
    expect(page.locator("#content")).to_contain_text("admin")
    expect(page.locator("#content")).to_contain_text("5")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_pages_are_accessible(visit, stack, scheme, width):
    page = visit(color_scheme=scheme, viewport={"width": width, "height": 800})
    placed = order(page)
    paths = ["/", "/cart/", "/checkout/", f"/orders/{placed}/", "/orders/find/", "/login/"]
    slug = stack.sql("SELECT slug FROM orders_product LIMIT 1")[0][0]
    paths.append(f"/products/{slug}/")
    look(page, paths)
    log_in(page, stack, "operator")
    task = stack.sql("SELECT id FROM orchestration_task LIMIT 1")[0][0]
    look(page, ["/ops/", "/ops/tasks/", f"/ops/tasks/{task}/", f"/ops/tasks/{task}/undo/"])
    step, task = failed(stack, page)
    look(page, [f"/ops/tasks/{task}/", f"/ops/steps/{step}/change/", f"/ops/steps/{step}/by-hand/"])
    page.get_by_role("button", name="Mark as done").click()
    expect(page.locator("#id_reason_error")).to_be_visible()
    assert Axe().run(page).violations_count == 0
    page.problems.clear()  # the browser logs the refusal itself
    look(
        page, ["/ops/agents/", "/ops/system/", "/ops/workflows/", "/ops/holds/new/?agent=shipping"]
    )


def failed(stack, page):
    """Return a step in error and its task; place an order with a declined card if none exists."""
    statement = "SELECT id, task_id FROM orchestration_step WHERE process_state = 'error' LIMIT 1"
    if not stack.sql(statement):
        order(page, "pm_card_visa_chargeDeclined")
        wait_for(lambda: stack.sql(statement), "the card is declined")
    return stack.sql(statement)[0]


def look(page, paths):
    """Run axe over pages; none may scroll sideways or log an error to the console."""
    for path in paths:
        page.goto(path)
        report = Axe().run(page)
        assert report.violations_count == 0, f"{path}: {report.generate_report()}"
        sideways = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert sideways <= 0, path
    assert page.problems == []


def test_outages_are_shown_and_the_page_recovers(visit, stack):
    operator = visit()
    log_in(operator, stack, "operator")
    operator.goto("/ops/tasks/")
    strip, pill = operator.locator("#health"), operator.locator("[data-live-state]")
    stack.manage("stopProcess", "redis")
    try:
        expect(strip).to_contain_text("Redis is down")
    finally:
        stack.manage("startProcess", "redis")
    expect(strip).to_be_empty()
    with stack.frozen(*WORKERS):  # silent, as after kill -9
        expect(strip).to_contain_text("No worker is running")
    expect(strip).to_be_empty()
    stack.manage("stopProcess", "postgres")
    try:
        expect(pill).to_have_class("pill offline")
        other = operator.context.new_page()
        other.goto("/ops/tasks/")
        expect(other.locator("h1")).to_have_text("The database is unavailable")
    finally:
        stack.manage("startProcess", "postgres")
    expect(pill).to_have_class("pill live", timeout=30_000)
    expect(other.locator("h1")).to_have_text("Tasks", timeout=30_000)

    operator.bring_to_front()
    operator.context.clear_cookies()
    expect(operator.locator("#signed-out")).to_be_visible()
    expect(pill).to_have_class("pill offline")
    log_in(other, stack, "operator")
    operator.bring_to_front()
    operator.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(pill).to_have_class("pill live")
    expect(operator.locator("#signed-out")).to_be_hidden()
