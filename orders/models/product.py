"""What the shop sells. Amounts are in minor units of their currency."""

from typing import cast

from django.db import models
from django.db.models import F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Now
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from ..currency import LARGEST_TOTAL, shop_currency
from .pricing import DatedPrice, TaxClass


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
    def picture_path(self) -> str:
        """The path of its picture below the static files."""
        return f"products/{self.picture}.svg"
