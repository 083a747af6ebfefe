"""How a customer can pay: test cards of the provider and of the sandbox, and by bank transfer."""

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class Card(TextChoices):
    """A payment method of the provider, by its id there; for a transfer, its type."""

    VISA = "pm_card_visa", _("Visa ending in 4242")
    DECLINED = "pm_card_visa_chargeDeclined", _("Visa that the bank declines")
    NO_FUNDS = (
        "pm_card_visa_chargeDeclinedInsufficientFunds",
        _("Visa without sufficient funds"),
    )
    SLOW = "pm_card_sandbox_timeoutTwice", _("Visa of a bank that answers only the third time")
    LOST = "pm_card_sandbox_replyLost", _("Visa whose bank's first answer gets lost")
    ASKS = "pm_card_threeDSecure2Required", _("Visa of a bank that asks you to confirm")
    APP = "pm_card_sandbox_bankApp", _("Visa that you confirm in your bank's app")
    RISKY = "pm_card_riskLevelElevated", _("Visa that looks risky to the provider")
    BLOCKED = "pm_card_radarBlock", _("Visa that the provider blocks as too risky")
    EXPIRES = (
        "pm_card_sandbox_authorizationExpires",
        _("Visa whose authorization expires at once"),
    )
    TRANSFER = "customer_balance", _("Bank transfer")


TRANSFERRED_WITHIN = 7 * 86_400  # seconds for which an order waits for its bank transfer
RELEASED_WITHIN = (
    3 * 86_400
)  # seconds for that after a release: the customer is not at the page then
NO_CARD = "none"  # the method of an order that leaves nothing to pay
CONFIRMED_WITHIN = 1_800  # seconds for which it waits for its customer to confirm at their bank
CARDS = [
    choice for choice in Card.choices if choice[0] != Card.TRANSFER
]  # to pay with another card
