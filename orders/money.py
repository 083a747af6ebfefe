"""Amounts in minor units, as people read them."""

from django.utils.translation import get_language

SYMBOLS = {"EUR": "€", "GBP": "£", "USD": "$"}
SEPARATORS = str.maketrans(",.", ".,")


def money(amount: int, currency: str = "EUR") -> str:
    """Return an amount in minor units (cents) as text: 123450 → "€1,234.50", "1.234,50 €"."""
    sign = "-" if amount < 0 else ""
    whole, cents = divmod(abs(amount), 100)
    plain = f"{whole:,}.{cents:02}"
    if (get_language() or "en").startswith("de"):
        # a narrow space that does not break: the sign of the currency stays with its amount
        return f"{sign}{plain.translate(SEPARATORS)}\u202f{SYMBOLS.get(currency, currency)}"
    return f"{sign}{SYMBOLS.get(currency, currency + ' ')}{plain}"
