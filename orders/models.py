"""The shop's tables: products, orders, accounts. Amounts are in minor units (cents)."""

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from .cards import Card
from .lifecycle import requests


class Availability(models.TextChoices):
    """A product's stock as shown to customers; the inventory decides."""

    PLENTY = "plenty", _("In stock")
    FEW = "few", _("Only a few left")
    NONE = "none", _("Sold out")


class Sold(models.QuerySet["Product"]):
    """Products that can be bought."""

    def sold(self) -> "Sold":
        """Filter for products on sale, sold out or not."""
        return self.filter(active=True)

    def available(self) -> "Sold":
        """Filter for products that can be added to a cart."""
        return self.sold().exclude(stock=Availability.NONE)


class Product(models.Model):
    """A product."""

    sku = models.CharField("SKU", max_length=40, primary_key=True)
    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=40, help_text="The shelf it is on: Coffee, Tea, …")
    summary = models.CharField(max_length=160, help_text="One line, for the grid.")
    description = models.TextField()
    price = models.PositiveIntegerField(help_text="In cents.")
    currency = models.CharField(max_length=3, default="EUR", editable=False)
    picture = models.CharField(
        max_length=80, help_text="The name of an SVG in static/products/, without its extension."
    )
    position = models.PositiveIntegerField(default=0, help_text="Lower comes first.")
    active = models.BooleanField(default=True, help_text="Only active products can be bought.")
    stock = models.CharField(
        max_length=6,
        choices=Availability,
        default=Availability.PLENTY,
        db_default=Availability.PLENTY,
        help_text="Shown to customers. A product that is sold out is listed and cannot be bought.",
    )

    objects = Sold.as_manager()

    class Meta:
        ordering = ["position", "name"]
        constraints = [
            models.CheckConstraint(
                # free goods would need a checkout without payment
                condition=Q(price__gte=1, price__lte=1_000_000),
                name="product_price",
                violation_error_message="A price is between 1 cent and 10,000.00.",
            ),
            models.CheckConstraint(
                condition=Q(stock__in=Availability.values), name="product_stock_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        """Return the path of its page."""
        return reverse("shop:product", args=[self.slug])

    @property
    def available(self) -> bool:
        """Whether it can be added to a cart."""
        return self.active and self.stock != Availability.NONE

    @property
    def picture_path(self) -> str:
        """The path of its picture below the static files."""
        return f"products/{self.picture}.svg"


class Aside(models.TextChoices):
    """Why a placed order is not processed."""

    REFUSED = "refused", "Set aside: staff decide"
    CLOSED = "closed", "Not processed"


class Placement(models.Model):
    """One use of a checkout's token, which makes placing an order idempotent.

    Written in the transaction that posts the order. The submission process writes the order later;
    until then this row is the shop's record of it.
    """

    order = models.UUIDField(primary_key=True, help_text="The order's id, made by the checkout.")
    fingerprint = models.CharField(
        max_length=64,
        help_text="Of the placed content: the same token with other content is refused.",
    )
    customer = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        db_constraint=False,  # as in Order
        db_index=False,
        related_name="placements",
    )
    application = models.CharField(
        max_length=60,
        blank=True,
        db_default="",
        help_text="The application that placed it by the API, if any.",
    )
    offer = models.JSONField(
        null=True, help_text="The lines, total and currency promised to an application."
    )
    aside = models.CharField(
        max_length=7,
        choices=Aside,
        blank=True,
        db_default="",
        help_text="Why it did not become an order, by the last status message about it.",
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            models.Index(
                fields=["customer", "-created_at"],
                condition=Q(customer__isnull=False),
                name="placement_of_customer",
            ),
            # an application's orders, newest first
            models.Index(
                fields=["application", "-created_at", "-order"],
                condition=~Q(application=""),
                name="placement_of_application",
            ),
        ]

    def __str__(self) -> str:
        return str(self.order)


class OrderStatus(models.TextChoices):
    """The status of an order by the engine's last message."""

    RECEIVED = "received", _("Received")
    CONFIRMED = "confirmed", _("Confirmed")
    FAILED = "failed", _("Needs attention")
    UNDOING = "undoing", _("Being cancelled")
    UNDONE = "undone", _("Cancelled")


class Order(models.Model):
    """An order, written by the submission process together with its task."""

    id = models.UUIDField(primary_key=True, editable=False)
    number = models.CharField(max_length=20, help_text="The id, short enough to read out.")
    email = models.EmailField()
    name = models.CharField(max_length=100)
    street = models.CharField(max_length=120)
    postcode = models.CharField(max_length=20)
    city = models.CharField(max_length=80)
    country = models.CharField(max_length=2)
    region = models.CharField(
        max_length=80, blank=True, db_default="", help_text="The county or province, if any."
    )
    total = models.PositiveBigIntegerField(help_text="In cents.")
    currency = models.CharField(max_length=3)
    payment_method = models.CharField(max_length=80, choices=Card.choices)
    status = models.CharField(max_length=10, choices=OrderStatus, default=OrderStatus.RECEIVED)
    status_number = models.PositiveIntegerField(
        default=0, help_text="Of the last status message applied; older ones change nothing."
    )
    snapshot = models.JSONField(
        null=True, editable=False, help_text="Progress of its task by the last status message."
    )
    asked = models.JSONField(
        null=True,
        editable=False,
        help_text="The last request to change it; see `orders/lifecycle/requests.py`.",
    )
    parcel = models.CharField(
        max_length=60,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="Its parcel's tracking number, once there is one.",
    )
    fingerprint = models.CharField(max_length=64, help_text="Of its task's input.")
    language = models.CharField(
        max_length=5,
        default="en",
        db_default="en",
        help_text="The language of e-mails to its customer.",
    )
    waits_until = models.DateTimeField(
        null=True, help_text="Until when its customer waits for goods that are sold out."
    )
    customer = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        # a queued message may outlive the account; inserting the order must not fail then
        db_constraint=False,
        db_index=False,  # see order_of_customer
        related_name="orders",
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=OrderStatus.values), name="order_status_known"
            ),
        ]
        indexes = [
            models.Index(fields=["-created_at"], name="order_newest"),
            # not unique: orders that share a number by chance differ in their e-mail address
            models.Index(fields=["number"], name="order_by_number"),
            # operators find an order by the words of its customer's name, each by its beginning; without
            # a list of what is pending, as emptying that delays the order that fills it
            GinIndex(SearchVector("name", config="simple"), name="order_by_name", fastupdate=False),
            # and by its parcel
            models.Index(
                fields=["parcel"],
                opclasses=["varchar_pattern_ops"],
                condition=Q(parcel__gt=""),
                name="order_by_parcel",
            ),
            # most orders are from guests, and are not in this index
            models.Index(
                fields=["customer", "-created_at", "-id"],
                condition=Q(customer__isnull=False),
                name="order_of_customer",
            ),
        ]

    def __str__(self) -> str:
        return self.number

    def get_absolute_url(self) -> str:
        """Return the path of its page, which shows no personal data without a signed link."""
        return reverse("shop:order", args=[self.id])

    @property
    def request(self) -> requests.ChangeRequest | None:
        """The customer's last request to change it, if any."""
        return requests.read(self.asked)


class OrderLine(models.Model):
    """A product and its quantity, with price and name when ordered."""

    order = models.ForeignKey(Order, models.CASCADE, related_name="lines")
    sku = models.CharField("SKU", max_length=40)
    name = models.CharField(max_length=120)
    unit_price = models.PositiveIntegerField(help_text="In cents.")
    quantity = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["order", "sku"], name="order_line_once"),
            models.CheckConstraint(
                condition=Q(quantity__gte=1, quantity__lte=99), name="order_line_quantity"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.quantity} of {self.name}"

    @property
    def price(self) -> int:
        """Price of the line in minor units."""
        return self.unit_price * self.quantity


class Profile(models.Model):
    """A customer's usual address."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True)
    name = models.CharField(max_length=100)
    street = models.CharField(max_length=120)
    postcode = models.CharField(max_length=20)
    city = models.CharField(max_length=80)
    country = models.CharField(max_length=2)
    region = models.CharField(max_length=80, blank=True, db_default="")

    def __str__(self) -> str:
        return self.name


class Throttle(models.Model):
    """A count of recent tries; `orders/rate_limit.py` counts and deletes."""

    key = models.CharField(
        max_length=100, primary_key=True, help_text="The kind of try and a hash of its origin."
    )
    count = models.PositiveIntegerField()
    until = models.DateTimeField(db_index=True, help_text="When the count is reset.")

    def __str__(self) -> str:
        return self.key


class Visitor(models.Model):
    """What a browser's visitor has; `orders/visitors.py` reads and changes it."""

    key = models.UUIDField(primary_key=True, editable=False, help_text="The cookie's value.")
    content = models.JSONField(default=dict, help_text="The cart, and the ids of orders.")
    changed_at = models.DateTimeField(db_default=Now(), db_index=True)  # old ones are removed

    def __str__(self) -> str:
        return str(self.key)
