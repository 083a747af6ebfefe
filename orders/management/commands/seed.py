"""`manage.py seed`: what a fresh installation needs to be looked at."""

from typing import Any
from urllib.error import URLError

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management.base import BaseCommand
from django.db import transaction
from django.utils.text import slugify

from orchestration.api import ensure_application, give
from orders.catalogue import CATALOGUE, GONE
from orders.exchange import exchange
from orders.models import Availability, Product
from orders.scopes import READ_ORDERS, READ_STATUS, WRITE_ORDERS
from sasweb.stack import folders

STOCK = 100_000  # pieces of each product, at the sandbox
EXAMPLE = "example"  # an application that places orders by the API
PATIENCE = 3.0  # seconds that the sandbox may take to answer

# what each role of the engine may see and do in the shop's own records
SEES = ("orders.view_order", "orders.view_product")
SELLS = ("orders.add_product", "orders.change_product")
GROUPS = {"viewer": (), "operator": SEES, "lead": SEES, "admin": (*SEES, *SELLS)}


class Command(BaseCommand):
    """Adds what is missing and changes nothing that is there."""

    help = (
        "Add the demo's catalogue, stock, groups, users and application, where they are missing. "
        "Examples: `manage.py seed`; again after a new version: `manage.py seed`."
    )

    def handle(self, *_args: Any, verbosity: int = 1, **_options: Any) -> None:
        """Seed the database, then the sandbox, whose absence is no reason to fail."""
        self._verbose = verbosity > 0
        with transaction.atomic():
            self._say(f"{add_products()} products added, {len(CATALOGUE)} in the catalogue")
            add_groups()
            self._say(f"groups: {', '.join(GROUPS)}")
            for name in GROUPS:
                made = add_user(name)
                self._say(f"user {name}: {'made' if made else 'there already, password unchanged'}")
            made = add_application()
            self._say(f"application {EXAMPLE}: {'made' if made else 'there already'}")
        try:
            self._say(f"stock of {add_stock()} products added at {settings.INVENTORY_URL}")
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
    """Add the products of the catalogue that are missing; return how many."""
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
                price=item.price,
                picture=item.sku,
                position=position,
                stock=Availability.FEW if item.sku == GONE else Availability.PLENTY,
            )
            for position, item in enumerate(CATALOGUE)
        ),
        ignore_conflicts=True,
    )
    return Product.objects.count() - before


def add_groups() -> None:
    """Let the roles see the shop's records; a permission that an admin took away comes back."""
    for name, permissions in GROUPS.items():
        give(name, permissions)


def add_user(name: str) -> bool:
    """Make a demo user with this installation's own password, reporting whether it was missing."""
    users = get_user_model().objects
    if users.filter(username=name).exists():
        return False
    password = folders.secret(f"{name}_password", make_it=True)
    if name == "admin":
        users.create_superuser(name, password=password)
    else:
        users.create_user(name, password=password).groups.add(Group.objects.get(name=name))
    return True


def add_application() -> bool:
    """Make the example application with this installation's own token, if it is missing."""
    return ensure_application(
        EXAMPLE,
        f"sas_{folders.secret('example_token', make_it=True)}",
        description="Places orders by the API, as docs/shop_client.py does.",
        scopes=(WRITE_ORDERS, READ_ORDERS, READ_STATUS),
    )


def add_stock() -> int:
    """Give the sandbox stock of what it does not know; return of how many products.

    What it knows is left alone, so that a second start keeps what the first one sold.
    """
    stock = f"{settings.INVENTORY_URL}/inventory/stock"
    known = exchange(stock, patience=PATIENCE)
    missing = {
        item.sku: 0 if item.sku == GONE else STOCK for item in CATALOGUE if item.sku not in known
    }
    if missing:
        exchange(stock, missing, method="PUT", patience=PATIENCE)
    return len(missing)
