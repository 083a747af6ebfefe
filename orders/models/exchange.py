"""What is sent for goods that came back: an order of its own, paid by what these had cost."""

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from .order import Order
from .returned import Return


class Exchange(models.Model):
    """A replacement: an order whose price the payment of another one stands for.

    Written in the transaction that places it, and never by a process that serves the public: see
    `orders/management/commands/grant_shop.py`.
    """

    # not a foreign key: the submission process writes the order later
    order = models.UUIDField(
        primary_key=True, editable=False, help_text="The replacement, once it is taken."
    )
    of = models.OneToOneField(Return, models.CASCADE, related_name="exchange")
    # its index finds what an order stands for
    payer = models.ForeignKey(
        Order,
        models.CASCADE,
        related_name="exchanges",
        help_text="The order that was paid: of a replacement for a replacement, the first one.",
    )
    amount = models.PositiveBigIntegerField(help_text="What it costs, in minor units.")
    returned = models.PositiveBigIntegerField(
        default=0,
        db_default=0,
        help_text="Of that, what was paid back since, or stands for another replacement.",
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(returned__lte=F("amount")), name="exchange_returned_part"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount} of {self.payer_id}"

    @property
    def left(self) -> int:
        """What the payment still stands for, in minor units."""
        return self.amount - self.returned
