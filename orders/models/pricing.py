"""What the owner of the shop sets beside products: prices from a date on, tax, shipping, discounts.

Amounts are in minor units of the shop's currency, percentages in hundredths.
"""

from operator import itemgetter

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from ..countries import COUNTRIES
from ..currency import LARGEST_TOTAL, shop_currency


class TaxClass(models.TextChoices):
    """Which of a country's rates a product has."""

    STANDARD = "standard", "Standard rate"
    REDUCED = "reduced", "Reduced rate"
    ZERO = "zero", "No tax"


def country_choices() -> list[tuple[str, str]]:
    """Return the countries with delivery, by name, for the admin."""
    return sorted(((code, str(name)) for code, name in COUNTRIES.items()), key=itemgetter(1))


class TaxRate(models.Model):
    """The value added tax of a country and a class of products; prices include it."""

    country = models.CharField(max_length=2, choices=country_choices)
    tax_class = models.CharField(
        max_length=8,
        choices=[choice for choice in TaxClass.choices if choice[0] != TaxClass.ZERO],
        help_text="A country without a rate is delivered to without tax, as an export.",
    )
    percent = models.PositiveIntegerField(help_text="Part of prices, which include it.")

    class Meta:
        ordering = ["country", "tax_class"]
        constraints = [
            # orders/shop/tariff.py reads a country's rates by it
            models.UniqueConstraint(
                fields=["country", "tax_class"],
                name="tax_rate_once",
                violation_error_message="This country has a rate of this class.",
            ),
            models.CheckConstraint(condition=Q(percent__lte=100_00), name="tax_rate_percent"),
        ]

    def __str__(self) -> str:
        return f"{self.country} {self.tax_class}"


class ShippingPrice(models.Model):
    """What delivery costs, tax included; without a row for a country and for all, nothing."""

    country = models.CharField(
        max_length=2,
        blank=True,
        unique=True,
        choices=country_choices,
        help_text="Empty: every country without a price of its own.",
        error_messages={"unique": "This country has a price. Change that one."},
    )
    price = models.PositiveIntegerField(help_text="Including tax.")
    free_from = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Delivery is free from this price of the goods on, less a discount. Empty: never.",
    )
    currency = models.CharField(max_length=3, default=shop_currency, editable=False)

    class Meta:
        ordering = ["country"]
        constraints = [
            models.CheckConstraint(
                condition=Q(price__lte=LARGEST_TOTAL), name="shipping_price_limit"
            ),
        ]

    def __str__(self) -> str:
        return self.country or "Other countries"


class DatedPrice(models.Model):
    """A product's price from a moment on, until that of the next one."""

    product = models.ForeignKey(
        "Product", models.CASCADE, related_name="dated_prices", db_index=False
    )
    starts_at = models.DateTimeField(help_text="Customers see the price from then on.")
    price = models.PositiveIntegerField()
    currency = models.CharField(max_length=3, default=shop_currency, editable=False)

    class Meta:
        ordering = ["-starts_at"]
        constraints = [
            # its index finds the price that is due: orders/models/product.py
            models.UniqueConstraint(
                fields=["product", "starts_at"],
                name="dated_price_once",
                violation_error_message="This product has another price from the same moment on.",
            ),
            models.CheckConstraint(
                condition=Q(price__gte=1, price__lte=LARGEST_TOTAL), name="dated_price_positive"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.product_id} from {self.starts_at:%Y-%m-%d %H:%M}"


class DiscountCode(models.Model):
    """A code that takes a percentage or an amount off the price of the goods."""

    code = models.CharField(
        max_length=30, unique=True, help_text="Letters and digits; customers type it in any case."
    )
    percent = models.PositiveIntegerField(
        default=0, help_text="Off the price of the goods. 0: an amount instead."
    )
    amount = models.PositiveIntegerField(
        default=0, help_text="Off the price of the goods. 0: a percentage instead."
    )
    currency = models.CharField(max_length=3, default=shop_currency, editable=False)
    minimum = models.PositiveIntegerField(
        default=0, help_text="The least price of the goods that it is for."
    )
    starts_at = models.DateTimeField(null=True, blank=True, help_text="Empty: at once.")
    ends_at = models.DateTimeField(null=True, blank=True, help_text="Empty: never.")
    most = models.PositiveIntegerField(
        "times in total", null=True, blank=True, help_text="Empty: without a limit."
    )
    most_each = models.PositiveIntegerField(
        "times per customer",
        null=True,
        blank=True,
        help_text="By e-mail address. Empty: without a limit.",
    )
    used = models.PositiveIntegerField(
        default=0,
        editable=False,
        help_text="Orders placed with it, less those that were undone.",
    )
    active = models.BooleanField(default=True)

    class Meta:
        ordering = ["code"]
        constraints = [
            models.CheckConstraint(
                condition=Q(percent__gt=0, percent__lte=100_00, amount=0)
                | Q(percent=0, amount__gt=0, amount__lte=LARGEST_TOTAL),
                name="discount_code_one_kind",
                violation_error_message="Enter a percentage up to 100 or an amount, and not both.",
            ),
            models.CheckConstraint(
                condition=Q(ends_at__isnull=True)
                | Q(starts_at__isnull=True)
                | Q(ends_at__gt=F("starts_at")),
                name="discount_code_ends_later",
                violation_error_message="It has to end later than it starts.",
            ),
        ]

    def __str__(self) -> str:
        return self.code


class DiscountUse(models.Model):
    """One use of a code: written when the order is placed, removed when it is undone."""

    order = models.UUIDField(primary_key=True)
    code = models.ForeignKey(DiscountCode, models.CASCADE, related_name="uses", db_index=False)
    customer = models.CharField(
        max_length=64, help_text="A digest of the customer's e-mail address."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            # the uses of a code by one customer, and what is removed with a code
            models.Index(fields=["code", "customer"], name="discount_use_of_customer"),
        ]

    def __str__(self) -> str:
        return str(self.order)
