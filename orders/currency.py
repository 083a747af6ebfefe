"""The shop's currency, and the most that an order costs in it. Models import this: it loads no engine."""

from django.conf import settings

LARGEST_TOTAL = 99_999_999  # in minor units: the payment provider takes 8 digits


def shop_currency() -> str:
    """Return the code of the currency that the shop sells in."""
    code: str = settings.CURRENCY
    return code
