"""The cards that a customer can choose from: the payment provider's own test cards."""

from django.db.models import TextChoices


class Card(TextChoices):
    """A payment method of the provider, by its id there."""

    VISA = "pm_card_visa", "Visa ending in 4242"
    DECLINED = "pm_card_visa_chargeDeclined", "Visa that the bank declines"
    NO_FUNDS = (
        "pm_card_visa_chargeDeclinedInsufficientFunds",
        "Visa without sufficient funds",
    )
