"""What is paid back of an order, in part or all of it: each refund is a task of its own."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from .order import Order


class RefundState(models.TextChoices):
    """How a refund stands, by the last message about its task."""

    ASKED = "asked", "Under way"
    PAID = "paid", "Paid back"
    UNDONE = "undone", "Not paid back"


class Refund(models.Model):
    """An amount that goes back to the customer. Its id is the reference of its task."""

    id = models.UUIDField(primary_key=True, editable=False)
    order = models.ForeignKey(Order, models.CASCADE, related_name="refunds")
    amount = models.PositiveBigIntegerField(help_text="In minor units of the order's currency.")
    on_card = models.PositiveBigIntegerField(
        "on the gift card",
        default=0,
        db_default=0,
        help_text="Of the amount, what goes back to the gift card that paid.",
    )
    overpaid = models.BooleanField(
        default=False,
        db_default=False,
        help_text="It is not of the order's total: a transfer was above it, as units were removed.",
    )
    reason = models.CharField(max_length=200, help_text="The customer reads it in the letter.")
    state = models.CharField(max_length=6, choices=RefundState, default=RefundState.ASKED)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        related_name="+",
        db_constraint=False,  # as in Order
        db_index=False,
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["created_at"]
        constraints = [
            models.CheckConstraint(condition=Q(amount__gte=1), name="refund_amount_positive"),
            models.CheckConstraint(
                condition=Q(on_card__lte=F("amount")), name="refund_on_card_part"
            ),
            models.CheckConstraint(
                condition=Q(state__in=RefundState.values), name="refund_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount} of {self.order_id}"
