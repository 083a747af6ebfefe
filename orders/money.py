"""Amounts in minor units, as people read them."""

SYMBOLS = {"EUR": "€", "GBP": "£", "USD": "$"}


def money(amount: int, currency: str = "EUR") -> str:
    """Return an amount in minor units (cents) as text: 123450 → "€1,234.50"."""
    sign = "-" if amount < 0 else ""
    whole, cents = divmod(abs(amount), 100)
    return f"{sign}{SYMBOLS.get(currency, currency + ' ')}{whole:,}.{cents:02}"
