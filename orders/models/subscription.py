"""Subscriptions: a product that is ordered anew every two or four weeks, and the orders of each."""

from datetime import date, timedelta

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from ..cards import CARDS
from ..currency import shop_currency
from .product import Product


class Rhythm(models.IntegerChoices):
    """How many weeks lie between two orders."""

    TWO = 2, _("every 2 weeks")
    FOUR = 4, _("every 4 weeks")


class SubscriptionState(models.TextChoices):
    """Whether a subscription places orders."""

    ACTIVE = "active", _("Active")
    PAUSED = "paused", _("Paused")
    ENDED = "ended", _("Ended")


class Because(models.TextChoices):
    """Who or what paused or ended a subscription, in the words of the admin."""

    CUSTOMER = "customer", "The customer"
    UNPAID = "unpaid", "Unpaid orders"
    STAFF = "staff", "Staff"


class Subscription(models.Model):
    """What a customer gets, where to and how often. Amounts are in minor units.

    `next_on` is a day in the shop's time zone. Acts on it hold its row's lock: orders/subscriptions/acts.py.
    """

    id = models.UUIDField(primary_key=True, editable=False, help_text="Made by the form.")
    customer = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="subscriptions", db_index=False
    )
    product = models.ForeignKey(
        Product, models.PROTECT, related_name="subscriptions", db_index=False
    )
    quantity = models.PositiveSmallIntegerField()
    weeks = models.PositiveSmallIntegerField("rhythm", choices=Rhythm)
    email = models.EmailField(help_text="Letters go there.")
    name = models.CharField(max_length=100)
    street = models.CharField(max_length=120)
    postcode = models.CharField(max_length=20)
    city = models.CharField(max_length=80)
    country = models.CharField(max_length=2)
    region = models.CharField(max_length=80, blank=True)
    payment_method = models.CharField(max_length=80, choices=CARDS)
    language = models.CharField(max_length=5)
    price = models.PositiveIntegerField(help_text="Of one, as agreed: no order charges more.")
    currency = models.CharField(max_length=3, default=shop_currency)
    new_price = models.PositiveIntegerField(
        null=True, help_text="A higher one that its customer was informed of."
    )
    new_price_from = models.DateField(
        null=True, help_text="The day from which that may be charged."
    )
    next_on = models.DateField("next order", help_text="The day of the next order.")
    reminded_on = models.DateField(null=True, help_text="The next order that a letter announced.")
    state = models.CharField(
        max_length=6, choices=SubscriptionState, default=SubscriptionState.ACTIVE
    )
    because = models.CharField(
        "paused or ended", max_length=8, choices=Because, blank=True, default=""
    )
    reason = models.CharField(max_length=200, blank=True, help_text="Of staff, for the customer.")
    unpaid = models.PositiveSmallIntegerField(
        "unpaid orders", default=0, help_text="In a row, up to the last one."
    )
    failed_on = models.DateField(
        "failed", null=True, help_text="The last day on which its order could not be placed."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                condition=Q(quantity__gte=1, quantity__lte=99), name="subscription_quantity"
            ),
            models.CheckConstraint(
                condition=Q(weeks__in=Rhythm.values), name="subscription_rhythm_known"
            ),
            models.CheckConstraint(
                condition=Q(state__in=SubscriptionState.values), name="subscription_state_known"
            ),
        ]
        indexes = [
            # what is due, and to be announced: orders/subscriptions/renewal.py
            models.Index(
                fields=["next_on", "id"], condition=Q(state="active"), name="subscription_due"
            ),
            # whose price has risen: orders/subscriptions/prices.py
            models.Index(
                fields=["product", "price"], condition=Q(state="active"), name="subscription_price"
            ),
            # a customer's list
            models.Index(fields=["customer", "-created_at"], name="subscription_of_customer"),
        ]

    def __str__(self) -> str:
        return f"{self.quantity} of {self.product_id}"

    def get_absolute_url(self) -> str:
        """Return the path of its page, which its customer sees."""
        return reverse("shop:subscription", args=[self.id])

    @property
    def active(self) -> bool:
        """Whether it places orders."""
        return self.state == SubscriptionState.ACTIVE

    @property
    def ended(self) -> bool:
        """Whether it never places one again."""
        return self.state == SubscriptionState.ENDED

    def day_after(self, day: date) -> date:
        """Return the first of its days after one: whole rhythms from `next_on`."""
        return _later(self.next_on, self.weeks, day)

    @property
    def day_if_skipped(self) -> date:
        """The day of the order after the next one."""
        return self.next_on + timedelta(weeks=self.weeks)

    def agreed_on(self, day: date) -> int:
        """Return the most that one may cost on a day."""
        if self.new_price is not None and self.new_price_from and self.new_price_from <= day:
            return self.new_price
        return self.price


def _later(start: date, weeks: int, after: date) -> date:
    """Return the first day later than `start` and `after`, whole rhythms from `start` on."""
    past = max(0, (after - start).days // (weeks * 7))
    return start + timedelta(weeks=weeks * (past + 1))


class Paid(models.TextChoices):
    """What became of an order's payment, by the last message about it."""

    OPEN = "open", "Under way"
    PAID = "paid", "Paid"
    UNPAID = "unpaid", "Undone unpaid"
    CANCELLED = "cancelled", "Cancelled"


class SubscriptionOrder(models.Model):
    """An order that a subscription placed; its day is placed once."""

    order = models.UUIDField(primary_key=True, editable=False, help_text="The order's id.")
    subscription = models.ForeignKey(
        Subscription, models.CASCADE, related_name="orders", db_index=False
    )
    on = models.DateField(help_text="The day that it was due on.")
    unit_price = models.PositiveIntegerField(help_text="What one cost.")
    payment_method = models.CharField(max_length=80, help_text="What it was placed with.")
    paid = models.CharField(max_length=9, choices=Paid, default=Paid.OPEN)

    class Meta:
        ordering = ["-on"]
        constraints = [
            # its index has the orders of a subscription, too
            models.UniqueConstraint(fields=["subscription", "on"], name="subscription_order_once"),
            models.CheckConstraint(
                condition=Q(paid__in=Paid.values), name="subscription_order_paid_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.on}"
