"""Actions of customers and operators in a browser."""

import email
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.policy import default
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from drill.waiting import wait_for

SETTLED = "Promise.all(document.getAnimations().map(one => one.finished))"
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@contextmanager
def visiting(chromium: Browser, base_url: str) -> Iterator[Callable[..., Page]]:
    """Yield a function that opens a page in its own context and collects the browser's errors."""
    contexts = []

    def visit(path="/", **options):
        # a contrast is measured wrongly while a message still fades in
        options = {"reduced_motion": "reduce", **options}
        contexts.append(chromium.new_context(base_url=base_url, **options))
        page = contexts[-1].new_page()
        page.problems = []
        page.on("console", lambda line: line.type == "error" and page.problems.append(line.text))
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.goto(path)
        return page

    yield visit
    for context in contexts:
        context.close()


def order(page: Page, card: str = "pm_card_visa") -> str:
    """Place an order for the first product; return its id."""
    fill_checkout(page, card)
    page.get_by_role("button", name=re.compile("Place the order")).click()
    page.wait_for_url(re.compile(r"/orders/[0-9a-f-]{36}/"))
    return page.url.split("/orders/")[1][:36]


def order_without_scripts(page: Page, card: str = "pm_card_visa") -> str:
    """Place an order by a page that asks again, as the chosen country has its own shipping price."""
    fill_checkout(page, card)
    page.get_by_role("button", name=re.compile("Place the order")).click()
    expect(page.locator(".errors")).to_contain_text("Nothing was ordered")
    page.get_by_role("button", name=re.compile("Place the order")).click()
    return page.url.split("/orders/")[1][:36]


def fill_checkout(page: Page, card: str = "pm_card_visa") -> None:
    page.goto("/")
    page.get_by_role("button", name=re.compile("^Add to cart")).first.click()
    expect(page.locator("#messages")).to_contain_text("cart")
    page.goto("/checkout/")
    page.fill("[name=name]", "Ada Lovelace")
    page.fill("[name=email]", "ada@example.org")
    page.fill("[name=street]", "12 Analytical Way")
    page.fill("[name=postcode]", "T12 W8KP")
    page.fill("[name=city]", "Cork")
    page.select_option("[name=country]", "IE")
    page.check(f"[name=payment_method][value={card}]")
    # the order waits for the sums of the country: until then neither a click nor a key sends it
    expect(page.locator("#place")).to_be_enabled()


def log_in(page: Page, stack, name: str) -> None:
    password = (stack.folder / "secrets" / f"{name}_password").read_text()
    page.goto("/login/?next=/ops/")
    fill_login(page, name, password)


def fill_login(page: Page, name: str, password: str) -> None:
    page.fill("[name=username]", name)
    page.fill("[name=password]", password)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/ops/")


def type_password(page: Page, name: str, password: str = "correct horse") -> None:
    """Log in at the page of the staff's login that is open."""
    page.fill("[name=username]", name)
    page.fill("[name=password]", password)
    page.get_by_role("button", name="Log in", exact=True).click()


def check(page: Page) -> None:
    """Find no barrier in either theme, and no sideways scroll on a phone."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.evaluate(SETTLED)  # colours change by transitions
        report = Axe().run(page)
        assert report.violations_count == 0, report.generate_report()
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate(SIDEWAYS) <= 0
    page.set_viewport_size({"width": 1280, "height": 800})


def create_account(page: Page, stack, address: str, password: str = "correct horse") -> None:
    """Create an account, and follow the link of the letter."""
    page.goto("/account/sign-up/")
    page.fill("[name=email]", address)
    page.fill("[name=password]", password)
    page.fill("[name=again]", password)
    page.get_by_role("button", name="Create the account").click()
    page.wait_for_url("**/account/check-mail/")
    page.goto(wait_for(lambda: _link_to(stack.folder / "mail", address), f"a letter to {address}"))
    page.get_by_role("button", name="Yes, confirm it").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your account")


def _link_to(folder: Path, address: str) -> str:
    """Return the link in the letter to an address; "" while it is not there."""
    for file in folder.glob("*.log"):
        letter = email.message_from_bytes(file.read_bytes(), policy=default)
        link = re.search(r"http\S+/account/confirm/\S+", str(letter.get_content()))
        if letter["To"] == address and link:
            return link[0]
    return ""
