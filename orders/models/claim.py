"""Parcels that did not arrive, as their customers say: each claim is a task of its own, about its order."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from .order import Order


class ClaimState(models.TextChoices):
    """How a claim stands, by the last message about its task."""

    ASKED = "asked", _("We look for your parcel.")
    SENT_AGAIN = "again", _("We have sent your goods again.")
    REFUNDED = "refunded", _("You get money back.")
    REFUSED = "refused", _("By what we know it has arrived.")


class Claim(models.Model):
    """A parcel that its customer misses. Its id is the reference of its task."""

    id = models.UUIDField(primary_key=True, editable=False)
    # its index finds an order's claims
    order = models.ForeignKey(Order, models.CASCADE, related_name="claims")
    parcel = models.CharField(max_length=60, help_text="The tracking number.")
    again = models.CharField(
        max_length=60, blank=True, default="", db_default="", help_text="That of the next parcel."
    )
    paid = models.PositiveBigIntegerField(
        default=0, db_default=0, help_text="What is paid back for it, in minor units."
    )
    note = models.CharField(
        max_length=120,
        blank=True,
        default="",
        db_default="",
        help_text="What staff wrote to the customer about it.",
    )
    state = models.CharField(max_length=8, choices=ClaimState, default=ClaimState.ASKED)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["created_at"]
        constraints = [
            models.UniqueConstraint(fields=["order", "parcel"], name="claim_once"),
            models.CheckConstraint(
                condition=Q(state__in=ClaimState.values), name="claim_state_known"
            ),
        ]

    def __str__(self) -> str:
        return self.parcel
