"""The cards that a customer can choose from: test cards of the provider, and of our sandbox."""

from django.db.models import TextChoices


class Card(TextChoices):
    """A payment method of the provider, by its id there."""

    VISA = "pm_card_visa", "Visa ending in 4242"
    DECLINED = "pm_card_visa_chargeDeclined", "Visa that the bank declines"
    NO_FUNDS = (
        "pm_card_visa_chargeDeclinedInsufficientFunds",
        "Visa without sufficient funds",
    )
    SLOW = "pm_card_sandbox_timeoutTwice", "Visa of a bank that answers only the third time"
    LOST = "pm_card_sandbox_replyLost", "Visa whose bank's first answer gets lost"
