"""Amounts in minor units, and how many of them make one of a currency (ISO 4217)."""

MOST = 2  # digits after the point, of nearly all currencies
NONE = (
    "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV",
    "XAF", "XOF", "XPF",
)  # fmt: skip
THREE = ("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND")
DIGITS = {**dict.fromkeys(NONE, 0), **dict.fromkeys(THREE, 3)}


def digits(currency: str) -> int:
    """Return how many digits after the point a currency's minor unit is."""
    return DIGITS.get(currency.upper(), MOST)


def written(amount: int, currency: str) -> str:
    """Write an amount in minor units: 123450 of EUR → "1,234.50 EUR"."""
    places = digits(currency)
    return f"{amount / 10**places:,.{places}f} {currency.upper()}"
