"""What customers removed from their orders before it was sent: each removal is a task of its own."""

from django.db import models
from django.db.models.functions import Now

from .order import Order


class Removal(models.Model):
    """Units that are no longer in an order. Its id is the reference of its task."""

    id = models.UUIDField(primary_key=True, editable=False)
    # its index finds an order's removals
    order = models.ForeignKey(Order, models.CASCADE, related_name="removals")
    lines = models.JSONField(help_text="Products and units: [{sku, name, quantity}].")
    released = models.JSONField(
        help_text="Of these, what the inventory has again: [{sku, quantity, warehouse?}]."
    )
    amount = models.PositiveBigIntegerField(
        help_text="By how much the order costs less, in minor units."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["created_at"]

    def __str__(self) -> str:
        return f"{self.amount} of {self.order_id}"
