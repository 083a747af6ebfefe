"""The cards that a customer can choose: test cards of the provider and of the sandbox."""

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class Card(TextChoices):
    """A payment method of the provider, by its id there."""

    VISA = "pm_card_visa", _("Visa ending in 4242")
    DECLINED = "pm_card_visa_chargeDeclined", _("Visa that the bank declines")
    NO_FUNDS = (
        "pm_card_visa_chargeDeclinedInsufficientFunds",
        _("Visa without sufficient funds"),
    )
    SLOW = "pm_card_sandbox_timeoutTwice", _("Visa of a bank that answers only the third time")
    LOST = "pm_card_sandbox_replyLost", _("Visa whose bank's first answer gets lost")
