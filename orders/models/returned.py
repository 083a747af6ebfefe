"""What customers send back: each return is a task of its own, about its order."""

from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from .order import Order


class Reason(models.TextChoices):
    """Why something is sent back, in the customer's words."""

    NOT_LIKED = "not_liked", _("I do not like it")
    DAMAGED = "damaged", _("It arrived damaged")
    WRONG = "wrong", _("It is not what I ordered")
    OTHER = "other", _("Another reason")


class ReturnState(models.TextChoices):
    """How a return stands, by the last message about its task and by the warehouse's report."""

    ASKED = "asked", _("Your label is being made.")
    AWAITED = "awaited", _("We wait for your parcel.")
    ARRIVED = "arrived", _("Your parcel has arrived. We look at what is in it.")
    REFUNDED = "refunded", _("Done: you get money back.")
    REPLACED = "replaced", _("Done: we send you something else for it.")
    REFUSED = "refused", _("Done: we could not pay anything back.")
    LAPSED = "lapsed", _("Ended: no parcel came.")


class Return(models.Model):
    """Units of an order that come back. Its id is the reference of its task."""

    id = models.UUIDField(primary_key=True, editable=False)
    # its index finds an order's returns
    order = models.ForeignKey(Order, models.CASCADE, related_name="returns")
    lines = models.JSONField(help_text="Products and units: [{sku, name, quantity}].")
    reason = models.CharField(max_length=10, choices=Reason)
    exchange_for = models.JSONField(
        null=True,
        help_text="What the customer wants for them, as it was offered; see "
        "`orders/lifecycle/exchange_offers.py`. None: money.",
    )
    amount = models.PositiveBigIntegerField(help_text="What these units cost, in minor units.")
    paid = models.PositiveBigIntegerField(
        default=0, db_default=0, help_text="Of that, what staff decided to pay back."
    )
    label = models.CharField(
        max_length=60, blank=True, default="", db_default="", help_text="The label's number."
    )
    note = models.CharField(
        max_length=120,
        blank=True,
        default="",
        db_default="",
        help_text="What staff wrote to the customer after the inspection.",
    )
    state = models.CharField(max_length=8, choices=ReturnState, default=ReturnState.ASKED)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["created_at"]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=ReturnState.values), name="return_state_known"
            ),
            models.CheckConstraint(condition=Q(paid__lte=models.F("amount")), name="return_paid"),
        ]

    def __str__(self) -> str:
        return f"{self.amount} of {self.order_id}"

    @property
    def awaited(self) -> bool:
        """Whether its parcel has still to come."""
        return self.state in {ReturnState.ASKED, ReturnState.AWAITED}

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state not in {ReturnState.ASKED, ReturnState.AWAITED, ReturnState.ARRIVED}

    @property
    def replacement(self) -> UUID | None:
        """The order that is sent for it, if one is."""
        exchange = getattr(self, "exchange", None)
        return exchange.order if exchange else None
