"""What was ordered, from the checkout on. Amounts are in minor units of their currency."""

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower, Now
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from .. import handling
from ..cards import Card
from ..lifecycle import requests


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
    total = models.PositiveBigIntegerField(help_text="In minor units.")
    refunded = models.PositiveBigIntegerField(
        default=0, db_default=0, editable=False, help_text="Of that, what was paid back since."
    )
    charges = models.JSONField(
        null=True,
        editable=False,
        help_text="Shipping, discount and taxes; see `orders/charges.py`. None: the lines are all.",
    )
    handling = models.JSONField(
        null=True,
        editable=False,
        help_text="How it differs from a parcel of goods in stock; see `orders/handling.py`.",
    )
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
            # what joins an account whose owner has confirmed the address
            models.Index(
                Lower("email"), condition=Q(customer__isnull=True), name="guest_order_by_email"
            ),
        ]

    def __str__(self) -> str:
        return self.number

    def get_absolute_url(self) -> str:
        """Return the path of its page, which shows no personal data without a signed link."""
        return reverse("shop:order", args=[self.id])

    @property
    def to_pay(self) -> int:
        """What is left to pay beside a gift card or an exchange."""
        return handling.to_pay({"total": self.total, "handling": self.handling})

    @property
    def request(self) -> requests.ChangeRequest | None:
        """The customer's last request to change it, if any."""
        return requests.read(self.asked)


class OrderLine(models.Model):
    """A product and its quantity, with price and name when ordered."""

    order = models.ForeignKey(Order, models.CASCADE, related_name="lines")
    sku = models.CharField("SKU", max_length=40)
    name = models.CharField(max_length=120)
    unit_price = models.PositiveIntegerField(help_text="In minor units.")
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
