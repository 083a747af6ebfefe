"""The sandbox's pages in a real browser: breaking and healing partners, and the mailbox."""

import json
import re
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.people import visiting
from tests.support.sandbox import AUTHORIZED, MAIL, process, send

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]
ORDER = {"order": "o-1", "lines": [{"sku": "mug", "quantity": 1}]}
HTML = "<style>h1 { color: #1f5a4a }</style><h1>Thanks</h1><script>parent.owned = 1</script>"


@pytest.fixture
def port(tmp_path: Path):
    with process(tmp_path) as (_, port):
        send(port, "PUT", "/inventory/stock", "", {"mug": 1000})
        yield port


@pytest.fixture
def visit(chromium, port):
    """Return a function that opens a page of the sandbox, in a context of its own."""
    with visiting(chromium, f"http://localhost:{port}") as visit:
        yield visit


def reserve(port, key):
    return send(port, "POST", "/inventory/reservations", key, ORDER)[0]


def polled(page, times=2):
    """Wait until the page has refreshed itself."""
    for _ in range(times):
        with page.expect_response(lambda answer: answer.request.method == "GET") as answer:
            pass
        answer.value.finished()


def test_preset_breaks_a_partner_until_its_limit(visit, port):
    page = visit()
    page.evaluate("window.stayed = true")
    card = page.locator("#inventory")
    card.get_by_label("Break it").select_option("3")
    card.get_by_role("button", name="Answer 503").click()
    expect(page.locator("#inventory-state")).to_have_text("Failing")
    expect(page.get_by_role("status")).to_have_text("Inventory is failing. The others work.")
    expect(card.get_by_role("button", name="Answer 503")).to_be_focused()
    assert [reserve(port, "k-1") for _ in range(4)] == [503, 503, 503, 201]
    expect(page.locator("#inventory-state")).to_have_text("Works")
    expect(page.locator("#inventory-hits")).to_have_text("3")
    expect(page.locator("#effects tr").first).to_contain_text("reserve")
    expect(page.locator("#effects tr").first).to_contain_text("4×")  # noqa: RUF001
    page.get_by_role("button", name=re.compile("^Remove")).click()
    expect(page.locator("#fault-none")).to_be_visible()
    expect(page.get_by_role("heading", name="Faults", exact=True)).to_be_focused()
    assert page.evaluate("window.stayed")
    assert page.problems == []


def test_heal_buttons_heal_one_partner_or_all(visit, port):
    page = visit()
    for partner in ("payment", "shipping", "mail"):
        page.locator(f"#{partner}").get_by_role("button", name="Take it down").click()
        expect(page.locator(f"#{partner}-state")).to_have_text("Down")
    page.get_by_role("button", name="Heal Payment").click()
    expect(page.locator("#payment-state")).to_have_text("Works")
    expect(page.locator("#mail-state")).to_have_text("Down")
    page.get_by_role("button", name="Heal all").click()
    expect(page.get_by_role("status")).to_have_text("All partners work.")
    assert send(port, "GET", "/faults")[1]["faults"] == []


def test_page_works_without_javascript(visit, port):
    page = visit(java_script_enabled=False)
    page.locator("#mail").get_by_role("button", name="Refuse everything").click()
    expect(page).to_have_url(re.compile(r"/#mail$"))
    expect(page.locator("#mail-state")).to_have_text("Refusing")
    assert send(port, "POST", "/mail/messages", "k-1", MAIL)[0] == 422
    page.get_by_role("link", name="Refresh").click()
    expect(page.locator("#mail-hits")).to_have_text("1")
    page.get_by_role("button", name=re.compile("^Remove")).click()
    expect(page.locator("#mail-state")).to_have_text("Works")
    page.locator("#mail").get_by_role("button", name="Take it down").click()
    page.get_by_role("button", name="Heal Mail").click()
    expect(page.locator("#mail-state")).to_have_text("Works")


@pytest.mark.parametrize("width", [1280, 360])
def test_refresh_keeps_layout_focus_and_choices(visit, port, width):
    page = visit(viewport={"width": width, "height": 800})
    page.evaluate(
        """() => {
            window.shift = 0;
            new PerformanceObserver((list) => {
                for (const entry of list.getEntries()) {
                    if (!entry.hadRecentInput) window.shift += entry.value;
                }
            }).observe({ type: "layout-shift" });
        }"""
    )
    places = "[...document.querySelectorAll('.card')].map((card) => card.offsetTop)"
    before = page.evaluate(places)
    choice = page.locator("#payment").get_by_label("Break it")
    choice.select_option("10")
    choice.focus()
    page.locator("summary", has_text="Paths").click()
    choice.focus()
    trouble = {"partner": "payment", "action": "capture", "fault": "slow", "times": 1}
    faults = [trouble, {"partner": "mail", "fault": "down"}]
    faults.append({"partner": "shipping", "fault": "timeout_after_effect"})
    send(port, "PUT", "/faults", "", {"faults": faults})
    for number in range(5):
        assert reserve(port, f"k-{number}") == 201
    expect(page.locator("#mail-state")).to_have_text("Down")
    expect(page.locator("#inventory-requests")).to_have_text("5")
    polled(page)
    expect(choice).to_be_focused()
    expect(choice).to_have_value("10")
    expect(page.locator("details[open] summary")).to_contain_text("Paths")
    assert page.evaluate(places) == before
    assert page.evaluate("window.shift") < 0.01


def test_pulse_shows_offline_when_the_sandbox_has_stopped(visit, tmp_path):
    with process(tmp_path / "other") as (started, port):
        page = visit(f"http://localhost:{port}/")
        expect(page.locator("#pulse")).to_have_text("Live")
        started.kill()
        expect(page.locator("#pulse")).to_have_text("Offline")


def test_mailbox_refreshes_itself(visit, port):
    send(
        port,
        "POST",
        "/mail/messages",
        "k-1",
        MAIL | {"html": HTML, "text": "At http://a.example/b."},
    )
    page = visit("/mail/")
    page.get_by_text("As HTML").click()
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("heading", name="Thanks")).to_have_css("color", "rgb(31, 90, 74)")
    send(
        port, "POST", "/mail/messages", "k-2", MAIL | {"subject": "Second", "to": "bob@example.org"}
    )
    expect(page.locator("#mails h2")).to_have_text(["Second", "Thanks"])
    expect(page.locator("details[open] iframe")).to_be_visible()
    assert page.evaluate("window.owned") is None
    link = page.get_by_role("link", name="http://a.example/b")
    expect(link).to_have_attribute("href", "http://a.example/b")
    page.get_by_label("Recipient").fill("bob")
    page.keyboard.press("Enter")
    expect(page.locator("#mails h2")).to_have_text(["Second"])
    page.get_by_role("link", name="Show all").click()
    expect(page.locator("#mails h2")).to_have_count(2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_page_is_accessible(visit, port, scheme, width):
    page = visit(color_scheme=scheme, viewport={"width": width, "height": 800})
    look(page, "/")
    look(page, "/mail/")
    faults = [{"partner": "payment", "fault": "down"}, {"partner": "mail", "fault": "drip"}]
    faults[1] |= {"order": "an-order-with-a-long-name-" * 4, "times": 3}
    send(port, "PUT", "/faults", "", {"faults": faults})
    reserve(port, "k-1")
    long = {"to": "a.person.with.a.very.long.address@department.example.org", "html": HTML}
    send(port, "POST", "/mail/messages", "k-2", MAIL | long | {"order": "o" * 80})
    look(page, "/")
    page.get_by_text("Faults by script").click()
    look(page)
    look(page, "/mail/")
    page.get_by_text("HTML source").click()
    look(page)


def look(page, path=""):
    """Run axe; the page may not scroll sideways or log an error to the console."""
    if path:
        page.goto(path)
    expect(page.locator("#pulse")).to_have_text("Live")
    report = Axe().run(page)
    assert report.violations_count == 0, f"{path}: {report.generate_report()}"
    sideways = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert sideways <= 0, path
    assert page.problems == []


@pytest.mark.parametrize("act", ["confirm", "refuse"])
def test_bank_leads_back_to_where_the_customer_came_from(visit, port, act):
    back = f"http://127.0.0.1:{port}/healthz"  # to a browser, another site than localhost
    form = {
        "amount": "1999", "currency": "eur", "confirm": "true", "capture_method": "manual",
        "payment_method": "pm_card_threeDSecure2Required", "return_url": back,
        "metadata[order]": "o-1",
    }  # fmt: skip
    asked = Request(
        f"http://127.0.0.1:{port}/v1/payment_intents",
        urlencode(form).encode(),
        {**AUTHORIZED, "Idempotency-Key": "k-1"},
    )
    with urlopen(asked, timeout=10) as answer:  # noqa: S310
        intent = json.load(answer)
    page = visit(f"/bank/{intent['id']}")
    page.locator(f"button[value={act}]").click()
    page.wait_for_url(back)
