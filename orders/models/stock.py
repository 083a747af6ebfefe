"""What the inventory says of the stock, and what staff corrected of it: each correction is a task."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q, QuerySet, Sum
from django.db.models.functions import Now

FRESH_FOR = timedelta(hours=1)  # older levels are shown to staff alone
LONGEST = 60  # characters of a warehouse's name


class StockLevel(models.Model):
    """How many units of a product one warehouse has, by the inventory's last word."""

    product = models.ForeignKey(
        "Product", models.CASCADE, related_name="levels", db_index=False
    )  # the constraint has the index
    warehouse = models.CharField(max_length=LONGEST)
    on_hand = models.BigIntegerField(help_text="Free to be sold.")
    reserved = models.BigIntegerField(help_text="For orders that are not sent yet.")
    read_at = models.DateTimeField("as of")

    class Meta:
        verbose_name = "stock level"
        verbose_name_plural = "stock"
        ordering = ["product", "warehouse"]
        constraints = [
            # also for the levels of one product, and the sums of the shop's pages
            models.UniqueConstraint(fields=["product", "warehouse"], name="stock_level_once"),
        ]

    def __str__(self) -> str:
        return f"{self.product_id} in {self.warehouse}"

    @property
    def shelf(self) -> int:
        """How many units lie there: what is reserved has not left."""
        return self.on_hand + self.reserved


def on_hand() -> "QuerySet[StockLevel, Any]":
    """Return the units on hand by product, of all warehouses, as rows with `units`."""
    by_product = StockLevel.objects.order_by().values("product")
    return by_product.annotate(units=Sum("on_hand")).values("units")


def fresh() -> Q:
    """Return the condition of levels that are new enough for customers."""
    return Q(read_at__gte=Now() - FRESH_FOR)


class CorrectionKind(models.TextChoices):
    """What staff say of the stock."""

    RECEIVED = "received", "Goods received"
    COUNTED = "counted", "Counted on the shelf"
    REMOVED = "removed", "Taken out: broken, lost, for own use"


class CorrectionState(models.TextChoices):
    """How a correction stands, by the last message about its task."""

    ASKED = "asked", "Under way"
    MADE = "made", "Made"
    REFUSED = "refused", "Refused: nothing was changed"
    UNDONE = "undone", "Not made"


class StockCorrection(models.Model):
    """What staff corrected, and why. Its id is the reference of its task."""

    id = models.UUIDField(primary_key=True, editable=False)
    product = models.ForeignKey(
        "Product", models.CASCADE, related_name="corrections", db_index=False
    )  # the index below begins with it
    warehouse = models.CharField(max_length=LONGEST)
    kind = models.CharField(max_length=8, choices=CorrectionKind)
    units = models.BigIntegerField()
    expected = models.BigIntegerField(
        null=True, help_text="Of a count: what lay there by the books as it was counted."
    )
    change = models.BigIntegerField(
        null=True, help_text="By how much the inventory changed what is on hand."
    )
    reason = models.CharField(max_length=200)
    state = models.CharField(max_length=7, choices=CorrectionState, default=CorrectionState.ASKED)
    refusal = models.CharField(max_length=200, blank=True, db_default="")
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        related_name="+",
        db_constraint=False,  # as in Order
        db_index=False,
    )
    created_at = models.DateTimeField("asked at", db_default=Now())

    class Meta:
        verbose_name = "stock correction"
        ordering = ["-created_at"]
        indexes = [
            # the last ones of a product, on its page
            models.Index(fields=["product", "-created_at"], name="correction_of_product"),
            # the list in the admin
            models.Index(fields=["-created_at"], name="correction_by_time"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=CorrectionKind.values), name="correction_kind_known"
            ),
            models.CheckConstraint(
                condition=Q(state__in=CorrectionState.values), name="correction_state_known"
            ),
            models.CheckConstraint(
                condition=Q(kind="counted", units__gte=0, expected__gte=0)
                | Q(kind__in=["received", "removed"], units__gte=1, expected__isnull=True),
                name="correction_units",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.units} of {self.product_id} in {self.warehouse}"
