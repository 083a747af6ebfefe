"""The parcels of an order that is sent in several, or by the courier: each is a task of its own."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from .order import Order


class ParcelState(models.TextChoices):
    """How a parcel stands, by the last message about its task."""

    PACKING = "packing", _("Being packed")
    SENT = "sent", _("On its way")
    FAILED = "failed", _("Held up: we are looking into it")
    CANCELLED = "cancelled", _("Cancelled")


class Carrier(models.TextChoices):
    """Who takes it."""

    SHIPPING = "shipping", _("Parcel post")
    COURIER = "courier", _("Courier")


class Parcel(models.Model):
    """What one of an order's parcels has in it, and where it is.

    Orders that the usual carrier takes in one parcel have none: `Order.parcel` is its tracking number.
    """

    order = models.ForeignKey(Order, models.CASCADE, related_name="parcels", db_index=False)
    position = models.PositiveSmallIntegerField(help_text="Within its order, from 0.")
    warehouse = models.CharField(max_length=60, blank=True, db_default="")
    lines = models.JSONField(help_text="[{sku, quantity}]")
    carrier = models.CharField(max_length=8, choices=Carrier, blank=True, db_default="")
    tracking = models.CharField(max_length=60, blank=True, db_default="")
    state = models.CharField(max_length=9, choices=ParcelState, default=ParcelState.PACKING)
    number = models.PositiveIntegerField(
        help_text="Of the last status message applied; older ones change nothing."
    )

    class Meta:
        ordering = ["order", "position"]
        constraints = [
            models.UniqueConstraint(fields=["order", "position"], name="parcel_once"),
            models.CheckConstraint(
                condition=Q(state__in=ParcelState.values), name="parcel_state_known"
            ),
        ]
        indexes = [
            # operators find an order by the beginning of a tracking number
            models.Index(
                fields=["tracking"],
                opclasses=["varchar_pattern_ops"],
                condition=Q(tracking__gt=""),
                name="parcel_by_tracking",
            ),
        ]

    def __str__(self) -> str:
        return self.tracking or f"parcel {self.position + 1} of {self.order_id}"
