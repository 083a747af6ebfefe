"""`manage.py seed`: fill a new installation with demo data."""

from datetime import date, timedelta
from typing import Any
from urllib.error import URLError

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management.base import BaseCommand
from django.db import transaction
from django.utils import timezone
from django.utils.text import slugify

from orchestration.api import ensure_application, give, keep_tasks
from orders.agents.partner_http import request_json
from orders.agents.risk import ROLE
from orders.agents.workshop import WORKSHOP
from orders.api.scopes import READ_ORDERS, READ_STATUS, WRITE_ORDERS
from orders.demo.catalogue import (
    AWAY,
    CATALOGUE,
    FOOD,
    GONE,
    REGULAR,
    SCARCE,
    SCARCE_STOCK,
    SHIPPING,
    WAREHOUSE,
    WELCOME,
    Item,
)
from orders.lifecycle import claims, returns
from orders.lifecycle.gift_issue import GIFT_WORKFLOW
from orders.lifecycle.message import EMAIL_WORKFLOW, WORKFLOW
from orders.lifecycle.refunds import REFUND_WORKFLOW
from orders.models import DiscountCode, Product, ShippingPrice, TaxClass
from orders.models.product import Availability, Delivery
from orders.money import whole
from orders.stock.levels import CORRECTING, begin_reading
from orders.subscriptions.renewal import RENEWAL
from sasweb.stack import folders

STOCK = 100_000  # items of each product at the sandbox
EXAMPLE = "example"  # an application that uses the API
TIMEOUT = 3.0  # seconds for an answer of the sandbox

# permissions of the engine's roles on the shop's records
VIEW = tuple(
    f"orders.view_{row}"
    for row in (
        "order", "product", "giftcard", "giftuse", "subscription", "stocklevel", "stockcorrection",
    )
)  # fmt: skip
EDIT = (
    "orders.add_product",
    "orders.change_product",
    *(
        f"orders.{act}_{row}"
        for row in ("datedprice", "taxrate", "shippingprice", "discountcode")
        for act in ("view", "add", "change", "delete")
    ),
)
PAY_BACK = ("orders.add_refund", "orders.view_refund", "orders.add_giftcard")
TAKE_BACK = ("orders.view_claim", "orders.view_return", "orders.change_return")
HALT = ("orders.change_subscription",)
COUNT = ("orders.add_stockcorrection",)
LEAD = (*VIEW, *PAY_BACK, *TAKE_BACK, *HALT, *COUNT)
GROUPS = {
    "viewer": (),
    "operator": (*VIEW, *TAKE_BACK),
    "lead": LEAD,
    "admin": (*LEAD, *EDIT),
}
DECIDERS = ("operator", "lead")  # of the groups that decide
DECIDED = (ROLE, WORKSHOP, returns.ROLE)  # about risky payments, what is made, and what comes back


class Command(BaseCommand):
    """Adds what is missing and leaves what exists unchanged."""

    help = (
        "Add the demo's catalogue, stock, groups, users and application, where they are missing. "
        "Examples: `manage.py seed`; again after a new version: `manage.py seed`."
    )

    def handle(self, *_args: Any, verbosity: int = 1, **_options: Any) -> None:
        """Seed the database, then the sandbox, which may be absent."""
        self._verbose = verbosity > 0
        with transaction.atomic():
            added = add_products()
            add_prices()
            self._say(f"{added} products added, {len(CATALOGUE)} in the catalogue")
            if added == len(CATALOGUE):  # the first time: later an admin may have changed it
                keep_all()
            add_groups()
            self._say(f"groups: {', '.join(GROUPS)}")
            for name in GROUPS:
                made = add_user(name)
                self._say(f"user {name}: {'created' if made else 'exists, password unchanged'}")
            made = add_application()
            self._say(f"application {EXAMPLE}: {'created' if made else 'exists'}")
        try:
            self._say(f"stock of {add_stock()} products added at {settings.INVENTORY_URL}")
            if settings.STOCK_READ_EVERY:
                begin_reading("seed")  # once; the next time is the schedule's
        except (URLError, OSError, ValueError) as error:
            self.stderr.write(
                self.style.WARNING(
                    f"no stock added: the inventory at {settings.INVENTORY_URL} does not answer "
                    f"({error}). Run `manage.py seed` again once it is up."
                )
            )

    def _say(self, text: str) -> None:
        if self._verbose:
            self.stderr.write(text)


def add_products() -> int:
    """Add missing products of the catalogue; return their number."""
    before = Product.objects.count()
    Product.objects.bulk_create(
        (
            Product(
                sku=item.sku,
                slug=slugify(item.name),
                name=item.name,
                kind=item.kind,
                summary=item.summary,
                description=item.description,
                price=item.price * whole() // 100,
                tax_class=_tax_class(item),
                delivery=Delivery.GIFT_CARD if item.gift_card else Delivery.PARCEL,
                released_on=_days_from_now(item.released_in_days),
                made_within_days=item.made_within_days,
                picture=item.sku,
                position=position,
                stock=Availability.FEW if item.sku == GONE else Availability.PLENTY,
                subscribable=item.sku.startswith(REGULAR),
            )
            for position, item in enumerate(CATALOGUE)
        ),
        ignore_conflicts=True,
    )
    return Product.objects.count() - before


def _tax_class(item: Item) -> TaxClass:
    if item.gift_card:
        return TaxClass.ZERO
    return TaxClass.REDUCED if item.sku.startswith(FOOD) else TaxClass.STANDARD


def _days_from_now(days: int | None) -> date | None:
    return None if days is None else timezone.localdate() + timedelta(days=days)


def add_prices() -> None:
    """Add shipping prices where there are none, and the demo's discount code."""
    if not ShippingPrice.objects.exists():
        ShippingPrice.objects.bulk_create(
            ShippingPrice(
                country=country, price=price * whole() // 100, free_from=free_from * whole()
            )
            for country, price, free_from in SHIPPING
        )
    DiscountCode.objects.get_or_create(code=WELCOME, defaults={"percent": 10_00})


def keep_all() -> None:
    """Have no task removed: a demo shows all that ever was."""
    after = (
        REFUND_WORKFLOW,
        returns.RETURN_WORKFLOW,
        claims.CLAIM_WORKFLOW,
        GIFT_WORKFLOW,
        CORRECTING,
        RENEWAL,
    )
    for workflow in (WORKFLOW, EMAIL_WORKFLOW, *after):
        keep_tasks(workflow, days=None)


def add_groups() -> None:
    """Give the roles their permissions, also those that an admin removed."""
    for name, permissions in GROUPS.items():
        give(name, permissions)
    for role in DECIDED:
        Group.objects.get_or_create(name=role)


def add_user(name: str) -> bool:
    """Create a demo user with this installation's password; return False if it exists."""
    users = get_user_model().objects
    if users.filter(username=name).exists():
        return False
    password = folders.secret(f"{name}_password", make_it=True)
    if name == "admin":
        users.create_superuser(name, password=password)
    else:
        groups = {name, *DECIDED} if name in DECIDERS else {name}
        users.create_user(name, password=password).groups.set(Group.objects.filter(name__in=groups))
    return True


def add_application() -> bool:
    """Create the example application with this installation's token; return False if it exists."""
    return ensure_application(
        EXAMPLE,
        f"sas_{folders.secret('example_token', make_it=True)}",
        description="Places orders by the API, as docs/examples/shop_client.py does.",
        scopes=(WRITE_ORDERS, READ_ORDERS, READ_STATUS),
    )


def add_stock() -> int:
    """Add stock of products unknown to the sandbox; return their number.

    Known products keep their stock, so that a second start keeps what was sold.
    """
    stock = f"{settings.INVENTORY_URL}/inventory/stock"
    known = request_json(stock, timeout=TIMEOUT)
    special = {GONE: 0, AWAY: {WAREHOUSE: STOCK}, SCARCE: SCARCE_STOCK}
    missing = {
        item.sku: special.get(item.sku, STOCK)
        for item in CATALOGUE
        if item.sku not in known and not (item.gift_card or item.made_within_days)
    }
    if missing:
        request_json(stock, missing, method="PUT", timeout=TIMEOUT)
    return len(missing)
