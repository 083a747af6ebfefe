"""How many digits the minor unit of a currency is, and the signs that people write for some."""

MOST = 2  # digits after the point, of nearly all currencies
NONE = (
    "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV",
    "XAF", "XOF", "XPF",
)  # fmt: skip
THREE = ("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND")
# ISO 4217. Babel's digits are CLDR's: no minor unit for RSD or IQD, so an amount would be wrong.
DIGITS = {**dict.fromkeys(NONE, 0), **dict.fromkeys(THREE, 3)}
SYMBOLS = {"EUR": "€", "GBP": "£", "JPY": "¥", "USD": "$"}


def digits(currency: str) -> int:
    """Return how many digits after the point a currency's minor unit is.

    >>> currency_digits("EUR"), currency_digits("JPY"), currency_digits("KWD")
    (2, 0, 3)
    """
    return DIGITS.get(currency.upper(), MOST)
