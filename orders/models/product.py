"""What the shop sells. Amounts are in minor units of their currency."""

from datetime import datetime, time
from typing import cast

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Now
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..currency import LARGEST_TOTAL, shop_currency
from ..times import shop_zone
from .pricing import DatedPrice, TaxClass
from .stock import fresh, on_hand

RELEASED_AT = time(
    9
)  # of the day in the shop's zone: a customer whose card is declined then is awake


class Delivery(models.TextChoices):
    """How a product reaches its customer."""

    PARCEL = "parcel", "By parcel"
    GIFT_CARD = "gift_card", "A gift card: its code comes by e-mail"


class Availability(models.TextChoices):
    """A product's stock as shown to customers; the inventory decides."""

    PLENTY = "plenty", _("In stock")
    FEW = "few", _("Only a few left")
    NONE = "none", _("Sold out")


class Sold(models.QuerySet["Product"]):
    """Products that can be bought."""

    def sold(self) -> "Sold":
        """Filter for products on sale, sold out or not; those in another currency than the shop's are not."""
        return self.filter(active=True, currency=shop_currency())

    def available(self) -> "Sold":
        """Filter for products that can be added to a cart."""
        return self.sold().exclude(stock=Availability.NONE)

    def in_stock(self) -> "Sold":
        """Filter for goods that are sent at once."""
        return self.available().filter(
            delivery=Delivery.PARCEL, released_on__isnull=True, made_within_days__isnull=True
        )

    def counted(self) -> "Sold":
        """Add `left`, the units on hand by what is fresh of it: a look into stock_level_once for each."""
        left = {"left": Subquery(on_hand().filter(fresh(), product=OuterRef("pk")))}
        return self.annotate(**left)

    def costing(self, least: int, below: int | None) -> "Sold":
        """Filter for products by the price that is due."""
        bounds = {"due__gte": least, "due__lt": below}
        return self.filter(
            **{name: amount for name, amount in bounds.items() if amount is not None}
        )


SoldManager = models.Manager.from_queryset(Sold)


class Catalogue(SoldManager["Product"]):
    """Products, each with the price that is due now: no job changes prices."""

    def get_queryset(self) -> Sold:
        """Return all products with `due`, one look into the index dated_price_once each."""
        begun = DatedPrice.objects.filter(
            product=OuterRef("pk"), currency=OuterRef("currency"), starts_at__lte=Now()
        )
        latest = begun.order_by("-starts_at").values("price")[:1]
        due = {"due": Coalesce(Subquery(latest), F("price"))}
        return cast("Sold", super().get_queryset().annotate(**due))


class Product(models.Model):
    """A product."""

    due: int  # what `objects` adds
    left: int | None  # what `counted` adds

    sku = models.CharField("SKU", max_length=40, primary_key=True)
    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=40, help_text="The shelf it is on: Coffee, Tea, …")
    summary = models.CharField(max_length=160, help_text="One line, for the grid.")
    description = models.TextField()
    price = models.PositiveIntegerField(help_text="Until the first of its dated prices begins.")
    tax_class = models.CharField(
        max_length=8,
        choices=TaxClass,
        default=TaxClass.STANDARD,
        db_default=TaxClass.STANDARD,
        help_text="Which rate of the customer's country its price includes.",
    )
    currency = models.CharField(max_length=3, default=shop_currency, editable=False)
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
    subscribable = models.BooleanField(
        default=False, db_default=False, help_text="Customers may have it every two or four weeks."
    )

    delivery = models.CharField(
        max_length=9,
        choices=Delivery,
        default=Delivery.PARCEL,
        db_default=Delivery.PARCEL,
        help_text="A gift card has the price as its value. Give it the tax class without tax: tax is due "
        "on what is bought with it.",
    )
    released_on = models.DateField(
        null=True,
        blank=True,
        help_text="It can be ordered before; orders with it wait until 9:00 of that day, and are paid then.",
    )
    made_within_days = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(365)],
        help_text="It is made to order within these days. Empty: it is in stock.",
    )

    objects = Catalogue()

    class Meta:
        ordering = ["position", "name"]
        constraints = [
            models.CheckConstraint(
                # free goods would need a checkout without payment
                condition=Q(price__gte=1, price__lte=LARGEST_TOTAL),
                name="product_price_positive",
                violation_error_message="A price is more than nothing.",
            ),
            models.CheckConstraint(
                condition=Q(stock__in=Availability.values), name="product_stock_known"
            ),
            models.CheckConstraint(
                condition=Q(tax_class__in=TaxClass.values), name="product_tax_class_known"
            ),
            models.CheckConstraint(
                # a voucher for goods of any rate: it is taxed when it is spent (directive 2016/1065)
                condition=Q(delivery=Delivery.PARCEL)
                | Q(
                    delivery=Delivery.GIFT_CARD,
                    tax_class=TaxClass.ZERO,
                    made_within_days__isnull=True,
                ),
                name="product_gift_card",
                violation_error_message="A gift card bears no tax, and is not made to order.",
            ),
            models.CheckConstraint(
                condition=Q(made_within_days__isnull=True)
                | Q(made_within_days__gte=1, made_within_days__lte=365),
                name="product_made_within",
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
        in_currency = self.currency == shop_currency()
        return self.active and in_currency and self.stock != Availability.NONE

    @property
    def scarcity(self) -> str:
        """What customers read if few are left, or none, by the inventory's last word or the shop's own.

        It may be bought all the same: the reservation decides.
        """
        if not self.available:
            return ""
        left = None if self.terms else getattr(self, "left", None)
        if left is None or left > settings.LOW_STOCK:
            return "" if self.stock == Availability.PLENTY else self.get_stock_display()
        if left <= 0:
            return gettext("None left at the last count")
        return gettext("Only %(left)s left") % {"left": left}

    @property
    def is_gift_card(self) -> bool:
        """Whether a code is sent for it, and no parcel."""
        return self.delivery == Delivery.GIFT_CARD

    @property
    def released_at(self) -> datetime | None:
        """The moment of its release, while that is to come."""
        if self.released_on is None:
            return None
        at = datetime.combine(self.released_on, RELEASED_AT, shop_zone())
        return at if timezone.now() < at else None

    @property
    def terms(self) -> list[str]:
        """What is agreed about it beside the price: nothing for goods in stock."""
        terms = {
            "released": self.released_at,
            "made": self.made_within_days,
            "gift": self.is_gift_card,
        }
        return [f"{name}: {value}" for name, value in terms.items() if value]

    @property
    def picture_path(self) -> str:
        """The path of its picture below the static files."""
        return f"products/{self.picture}.svg"
