"""Which pages there are to look at, as whom, and what is done there first."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Page, expect

from tests.browser.people import fill_checkout


def press(words: str) -> Callable[[Page], None]:
    """Return what presses a button, as it is."""
    return lambda page: page.get_by_role("button", name=re.compile(words)).first.click()


def sent(words: str, **fields: str) -> Callable[[Page], None]:
    """Return what fills in a form and sends it, past what the browser itself would refuse."""

    def send(page: Page) -> None:
        page.evaluate("document.querySelectorAll('form').forEach(f => { f.noValidate = true })")
        for name, text in fields.items():
            page.locator(f"main [name={name}]").fill(text)
        press(words)(page)
        expect(page.locator(":is(.errors, .wrong):visible").first).to_be_visible()

    return send


def to_checkout(page: Page) -> None:
    """Have something in the cart, and an address typed."""
    fill_checkout(page)


def cart(page: Page) -> None:
    """Have two things in the cart."""
    page.goto("/")
    for number in (0, 5):
        with page.expect_response("**/cart/add/"):
            page.get_by_role("button", name=re.compile("^Add to cart")).nth(number).click()
    page.goto("/cart/")


def not_this(page: Page) -> None:
    """Type what a policy does not take, and ask what it would do."""
    page.fill("[name=failure_threshold]", "0")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".errornote, .errorlist").first).to_be_visible()


def what_if(page: Page) -> None:
    """Type another threshold, and wait for what it would have done."""
    with page.expect_response(re.compile("what-if")):
        page.fill("[name=failure_threshold]", "1")
    expect(page.locator("#what-if table")).to_be_visible()


def of_step(page: Page) -> None:
    """Open the policy of a step, and try a threshold of its own."""
    page.get_by_role("link", name="authorize_payment").first.click()
    what_if(page)


def dialog(page: Page) -> None:
    """Open the list of keys."""
    page.locator("[data-keys]").click()
    expect(page.locator("#keys")).to_be_visible()


def palette(page: Page) -> None:
    """Open the command palette, and search."""
    page.locator("[data-palette]").click()
    page.get_by_role("combobox").fill("pay")
    expect(page.locator('#palette-list [data-kind="Agent"]')).to_be_visible()


def to_exchange(page: Page) -> None:
    """Ask for another product for what is sent back."""
    page.locator("#return summary").click()
    page.locator("#return select").first.select_option("1")
    page.get_by_text("Another product").click()
    press("^Send it back")(page)
    expect(page.locator("#id_pieces, [data-none]")).to_be_visible()


def to_subscription(page: Page) -> None:
    """Go to the first subscription of the list."""
    page.locator("[data-subscription] a").first.click()
    page.wait_for_selector("#verdict")


def to_change_of_subscription(page: Page) -> None:
    """Go to the form that changes it."""
    to_subscription(page)
    page.get_by_role("link", name="Change", exact=True).click()
    page.wait_for_selector("#id_quantity")


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A page: `url` names its address, `path` is with what the past has, `docs` its picture there."""

    name: str
    path: str
    url: str = ""
    open: Callable[[Page], None] | None = None
    refused: bool = False  # its status is an error, which the browser says to the console
    docs: str = ""  # "1280-light", say


SHOP = (
    Shown(name="shop", url="shop:index", path="/", docs="1280-light"),
    Shown(name="product", url="shop:product", path="{product}"),
    Shown(name="product-sold-out", url="shop:product", path="{product_gone}"),
    Shown(name="cart-empty", url="shop:cart", path="/cart/"),
    Shown(name="find", url="shop:find", path="/orders/find/"),
    Shown(
        name="find-wrong", url="shop:find", path="/orders/find/", refused=True,
        open=sent("^Find", number="K-1234-5678", email="nobody@example.org"),
    ),
    Shown(name="sign-in", url="shop:sign_in", path="/account/sign-in/"),
    Shown(
        name="sign-in-wrong", url="shop:sign_in", path="/account/sign-in/", refused=True,
        open=sent("^Sign in", email="nobody@example.org", password="wrong"),
    ),
    Shown(name="sign-up", url="shop:sign_up", path="/account/sign-up/"),
    Shown(
        name="sign-up-wrong", url="shop:sign_up", path="/account/sign-up/", refused=True,
        open=sent("account$", email="nobody", password="short"),
    ),
    Shown(name="forgotten", url="shop:forgotten", path="/account/forgotten/"),
    Shown(name="reset-ended", url="shop:reset", path="/account/forgotten/x/y/"),
    Shown(name="check-mail", url="shop:check_mail", path="/account/check-mail/"),
    Shown(name="confirm-ended", url="shop:confirm", path="/account/confirm/x/"),
    Shown(name="form-address", path="/cart/add/", refused=True),
    Shown(name="cart", url="shop:cart", path="/cart/", open=cart),
    Shown(name="checkout", url="shop:checkout", path="/", open=to_checkout, docs="1280-light"),
    Shown(
        name="checkout-wrong", url="shop:checkout", path="/checkout/", refused=True,
        open=sent("^Place the order", email="nobody"),
    ),
    Shown(name="order-confirmed", url="shop:order", path="{order_confirmed}", docs="360-light"),
    Shown(name="order-declined", url="shop:order", path="{order_declined}", docs="360-dark"),
    Shown(name="order-sold-out", url="shop:order", path="{order_sold_out}", docs="360-light"),
    Shown(name="order-cancelled", url="shop:order", path="{order_refunded}"),
    Shown(name="order-refused", url="shop:order", path="{order_refused}"),
    Shown(name="order-asks", url="shop:order", path="{order_asks}"),
    Shown(name="order-removed", url="shop:order", path="{order_removed}"),
    Shown(name="order-late", url="shop:order", path="{order_late}", docs="1280-light"),
    Shown(name="order-returned", url="shop:order", path="{order_returned}"),
    Shown(name="order-exchanged", url="shop:order", path="{order_exchanged}"),
    Shown(
        name="order-exchange", url="shop:order_exchange", path="{order_confirmed}", open=to_exchange
    ),
    Shown(name="order-address", url="shop:order_address", path="{address_asks}"),
    Shown(name="order-of-others", url="shop:order", path="{stub_confirmed}"),
    Shown(name="missing", path="/nothing/", refused=True),
    Shown(name="login", url="login", path="/login/"),
    Shown(
        name="login-wrong", url="login", path="/login/",
        open=sent("^Log in", username="nobody", password="wrong"),
    ),
    Shown(name="login-forgotten", path="/login/forgotten/"),
    Shown(name="login-reset-ended", path="/login/forgotten/x/y/"),
    Shown(name="api", path="/api/docs"),
)  # fmt: skip

ACCOUNT = (
    Shown(name="account", url="shop:account", path="/account/", docs="1280-light"),
    Shown(name="account-address", url="shop:address", path="/account/address/"),
    Shown(
        name="account-address-wrong", url="shop:address", path="/account/address/", refused=True,
        open=sent("^(Keep|Save)", name="", city=""),
    ),
    Shown(name="subscribe", url="shop:subscribe", path="{product}subscribe/?weeks=2"),
    Shown(name="account-subscriptions", url="shop:subscriptions", path="/account/subscriptions/"),
    Shown(
        name="account-subscription", url="shop:subscription", path="/account/subscriptions/",
        open=to_subscription,
    ),
    Shown(
        name="account-subscription-change", url="shop:subscription_change",
        path="/account/subscriptions/", open=to_change_of_subscription,
    ),
    Shown(name="account-password", url="shop:password", path="/account/password/"),
    Shown(name="account-factor", path="/account/second-factor/"),
    Shown(name="account-factor-app", path="/account/second-factor/app/"),
    Shown(name="account-factor-passkey", path="/account/second-factor/passkey/"),
    Shown(name="account-sessions", path="/account/sessions/"),
    Shown(name="account-again", path="/account/again/"),
)  # fmt: skip

OPS = (
    Shown(name="ops", url="ops:overview", path="/ops/", docs="1280-light"),
    Shown(name="ops-keys", url="ops:overview", path="/ops/", open=dialog),
    Shown(name="ops-palette", url="ops:overview", path="/ops/", open=palette),
    Shown(name="ops-incidents", url="ops:incidents", path="/ops/incidents/"),
    Shown(
        name="ops-incident", url="ops:incident", path="/ops/incidents/{incident}/",
        docs="1280-light",
    ),
    Shown(name="ops-tasks", url="ops:tasks", path="/ops/tasks/", docs="1280-dark"),
    Shown(name="ops-tasks-search", url="ops:tasks", path="/ops/tasks/?q=state:error"),
    Shown(
        name="ops-tasks-not-understood", url="ops:tasks", path="/ops/tasks/?q=stp:x", refused=True
    ),
    Shown(name="ops-tasks-none", url="ops:tasks", path="/ops/tasks/?q=value:>99999"),
    Shown(name="ops-task", url="ops:task", path="/ops/tasks/{task_refused}/", docs="1280-light"),
    Shown(name="ops-task-late", url="ops:task", path="/ops/tasks/{task_late}/"),
    Shown(name="ops-task-done", url="ops:task", path="/ops/tasks/{task_confirmed}/"),
    Shown(name="ops-task-undone", url="ops:task", path="/ops/tasks/{task_refunded}/"),
    Shown(name="ops-undo", url="ops:undo", path="/ops/tasks/{task_refused}/undo/"),
    Shown(
        name="ops-undo-wrong", url="ops:undo", path="/ops/tasks/{task_refused}/undo/",
        refused=True, open=sent("^Undo"),
    ),
    Shown(name="ops-again-refused", url="ops:again", path="/ops/tasks/{task_confirmed}/again/"),
    Shown(name="ops-start", url="ops:start", path="/ops/workflows/canary/start/"),
    Shown(
        name="ops-start-wrong", url="ops:start", path="/ops/workflows/canary/start/",
        refused=True, open=sent("^Start"),
    ),
    Shown(name="ops-start-refused", url="ops:start", path="/ops/workflows/process_order/start/"),
    Shown(name="ops-priority", url="ops:priority", path="/ops/tasks/{task_refused}/priority/"),
    Shown(
        name="ops-priority-wrong", url="ops:priority", path="/ops/tasks/{task_refused}/priority/",
        refused=True, open=sent("^Change priority"),
    ),
    Shown(name="ops-amend", url="ops:amend", path="/ops/tasks/{task_refused}/input/"),
    Shown(
        name="ops-amend-wrong", url="ops:amend", path="/ops/tasks/{task_refused}/input/",
        refused=True, open=sent("^Change the input"),
    ),
    Shown(name="ops-change", url="ops:change", path="/ops/steps/{step}/change/"),
    Shown(
        name="ops-change-wrong", url="ops:change", path="/ops/steps/{step}/change/",
        refused=True, open=sent("[Rr]esubmit"),
    ),
    Shown(name="ops-by-hand", url="ops:by_hand", path="/ops/steps/{step}/by-hand/"),
    Shown(
        name="ops-by-hand-wrong", url="ops:by_hand", path="/ops/steps/{step}/by-hand/",
        refused=True, open=sent("^Mark as done"),
    ),
    Shown(name="ops-hold", url="ops:hold", path="/ops/holds/new/?agent=payment"),
    Shown(
        name="ops-hold-wrong", url="ops:hold", path="/ops/holds/new/?agent=payment",
        refused=True, open=sent("^Hold"),
    ),
    Shown(name="ops-release", url="ops:release", path="/ops/holds/{hold}/release/"),
    Shown(name="ops-operations", url="ops:operations", path="/ops/operations/"),
    Shown(
        name="ops-dry-run", url="ops:operation", path="/ops/operations/{draft}/",
        docs="1280-light",
    ),
    Shown(name="ops-operation", url="ops:operation", path="/ops/operations/{operation}/"),
    Shown(name="ops-task-late-effect", url="ops:task", path="/ops/tasks/{task_refunded}/"),
    Shown(
        name="ops-settle", url="ops:settle", path="/ops/alerts/{late_effect}/settle/", refused=True,
        open=sent("^Close"),
    ),
    Shown(name="ops-dead-letters", url="ops:dead_letters", path="/ops/dead-letters/"),
    Shown(name="ops-dead-letters-none", url="ops:dead_letters", path="/ops/dead-letters/?name=x"),
    Shown(
        name="ops-dead-letters-retry", url="ops:dead_letters_retry",
        path="/ops/dead-letters/retry/?kind=submission",
    ),
    Shown(
        name="ops-dead-letters-close", url="ops:dead_letters_close",
        path="/ops/dead-letters/close/?kind=submission", refused=True, open=sent("^Close"),
    ),
    Shown(name="ops-agents", url="ops:agents", path="/ops/agents/", docs="1280-light"),
    Shown(name="ops-probe", url="ops:probe", path="/ops/agents/{gate}/probe/"),
    Shown(name="ops-runbook", url="ops:runbook", path="/ops/runbook/"),
    Shown(name="ops-system", url="ops:system", path="/ops/system/", docs="1280-light"),
    Shown(name="ops-audit", url="ops:audit", path="/ops/audit/"),
    Shown(name="ops-second-factor", path="/login/second-factor/"),
    Shown(name="ops-second-factor-set-up", path="/login/set-up/"),
    Shown(name="ops-missing", path="/ops/nothing/", refused=True),
    Shown(name="ops-form-address", path="/ops/operations/new/", refused=True),
    Shown(name="ops-workflows", url="ops:workflows", path="/ops/workflows/", docs="1280-dark"),
    Shown(name="ops-decisions", url="ops:decisions", path="/ops/decisions/"),
    Shown(name="ops-schedules", url="ops:schedules", path="/ops/schedules/"),
    Shown(
        name="ops-schedule-pause", url="ops:schedule_pause",
        path="/ops/schedules/{schedule_nightly}/pause/",
    ),
    Shown(
        name="ops-schedule-resume", url="ops:schedule_resume",
        path="/ops/schedules/{schedule_leap-day}/resume/",
    ),
    Shown(
        name="ops-schedule-run", url="ops:schedule_run",
        path="/ops/schedules/{schedule_nightly}/run/",
    ),
)  # fmt: skip

VIEWER = (
    Shown(name="ops-task-redacted", url="ops:task", path="/ops/tasks/{task_refused}/"),
    Shown(name="ops-forbidden", url="ops:hold", path="/ops/holds/new/?agent=payment", refused=True),
)

POLICY = "/admin/orchestration/policy/payment/"
ADMIN = (
    Shown(name="admin", path="/admin/"),
    Shown(name="admin-policy-what-if", path=f"{POLICY}change/", open=what_if, docs="1280-light"),
    Shown(name="admin-policy-wrong", path=f"{POLICY}change/", open=not_this),
    Shown(name="admin-policy-history", path=f"{POLICY}history/"),
    Shown(
        name="admin-orchestration-steppolicy-what-if",
        path="/admin/orchestration/steppolicy/",
        open=of_step,
    ),
    Shown(name="admin-orders", path="/admin/orders/order/"),
    Shown(name="admin-order", path="/admin/orders/order/{id_confirmed}/change/"),
    Shown(name="admin-figures", path="/admin/orders/order/figures/"),
    Shown(name="admin-figures-wrong", path="/admin/orders/order/figures/?first=x", refused=True),
    Shown(name="admin-product", path="/admin/orders/product/tea-mint/change/"),
    Shown(name="admin-stock", path="/admin/orders/stocklevel/"),
    Shown(
        name="admin-stock-correct",
        path="/admin/orders/stocklevel/correct/?product=table-jar&warehouse=main",
    ),
    Shown(name="admin-shipping-price", path="/admin/orders/shippingprice/add/"),
    Shown(name="admin-tax-rates", path="/admin/orders/taxrate/"),
    Shown(name="admin-discount-code", path="/admin/orders/discountcode/add/"),
    Shown(name="admin-gift-cards", path="/admin/orders/giftcard/"),
    Shown(name="admin-gift-card-issue", path="/admin/orders/giftcard/issue/"),
    Shown(name="admin-password", path="/admin/password_change/"),
)

PARTNERS = (
    Shown(name="partners", path="{partners}/", docs="1280-light"),
    Shown(name="partners-mail", path="{partners}/mail/"),
)

PAGES = {
    "guest": SHOP, "customer": ACCOUNT, "operator": OPS, "viewer": VIEWER, "admin": ADMIN,
    "neighbour": PARTNERS,
}  # fmt: skip

# Addresses of the shop and of the dashboard that are no page: they take a form, and lead to one.
ACTS = {
    "shop:cart_add", "shop:cart_change", "shop:cart_undo", "shop:order_card",
    "shop:order_leave_out", "shop:order_wait", "shop:order_cancel", "shop:order_return", "shop:order_claim",
    "shop:order_remove",
    "shop:subscription_skip", "shop:subscription_pause", "shop:subscription_resume", "shop:subscription_end",
    "ops:save_view",
    "ops:forget_view", "ops:resubmit", "ops:acknowledge", "ops:operation_new",
    "ops:operation_confirm", "ops:operation_likewise", "ops:operation_look",
    "ops:operation_approve", "ops:operation_pause", "ops:operation_resume", "ops:operation_abort",
    "ops:incident_acknowledge", "ops:incident_assign", "ops:incident_note", "ops:incident_mute",
    "ops:incident_unmute", "ops:incident_resolve", "ops:started", "ops:export",
    "ops:record",
}  # fmt: skip
PARTS = {
    "shop:order_status",
    "shop:address_fields",
    "shop:checkout_sums",
    "shop:subscribe_sums",
    "ops:row",
    "ops:palette",
}  # what a page fetches of itself
