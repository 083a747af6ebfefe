"""Gift cards: what they were issued for, and what was paid with them. Amounts are in minor units."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from ..currency import shop_currency


class GiftCard(models.Model):
    """A voucher with a balance. Its code is known to its customer alone; the row has a digest of it."""

    id = models.UUIDField(primary_key=True, editable=False)
    digest = models.CharField(max_length=64, unique=True, help_text="Of the code, to find it by.")
    last4 = models.CharField("code ends in", max_length=4)
    amount = models.PositiveBigIntegerField(help_text="What it was issued with.")
    balance = models.PositiveBigIntegerField(help_text="What is left to pay with.")
    withdrawn = models.PositiveBigIntegerField(
        default=0,
        db_default=0,
        help_text="Taken back, as its price was returned to who bought it.",
    )
    void = models.BooleanField(
        default=False, db_default=False, help_text="The order that bought it was undone."
    )
    currency = models.CharField(max_length=3, default=shop_currency, editable=False)
    order = models.UUIDField(
        null=True, help_text="The order that bought it; empty: see the reason."
    )
    sku = models.CharField("SKU", max_length=40, blank=True, db_default="")
    unit = models.PositiveSmallIntegerField(
        default=1, db_default=1, help_text="Which one of the line of the order."
    )
    reason = models.CharField(
        max_length=200, blank=True, db_default="", help_text="Why it was issued by hand."
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        related_name="+",
        db_constraint=False,  # as in Order
        db_index=False,
    )
    letter = models.UUIDField(help_text="The reference of the task that sends its code.")
    unsent = models.CharField(
        max_length=30,
        blank=True,
        db_default="",
        editable=False,
        help_text="The code until the letter with it is sent; the shop's web process cannot read it.",
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            # one code per unit, however often its order is reported as completed; its index also finds
            # the cards of an order
            models.UniqueConstraint(fields=["order", "sku", "unit"], name="gift_card_once"),
            models.CheckConstraint(
                condition=Q(amount__gte=1, balance__lte=F("amount")), name="gift_card_balance"
            ),
        ]
        indexes = [
            models.Index(fields=["-created_at"], name="gift_card_newest"),
            # the codes that a letter is to have, while it is not sent
            models.Index(fields=["letter"], condition=~Q(unsent=""), name="gift_card_unsent"),
        ]

    def __str__(self) -> str:
        return f"…{self.last4}"


class GiftUse(models.Model):
    """What an order paid with a card: written as it is placed."""

    order = models.UUIDField(primary_key=True)
    card = models.ForeignKey(GiftCard, models.PROTECT, related_name="uses")
    amount = models.PositiveBigIntegerField(help_text="What it paid of the order.")
    returned = models.PositiveBigIntegerField(
        default=0, db_default=0, help_text="Of that, what was given back to the card."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["created_at"]
        constraints = [
            models.CheckConstraint(
                condition=Q(returned__lte=F("amount")), name="gift_use_returned"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount} of {self.order}"
