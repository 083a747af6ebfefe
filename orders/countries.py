"""The countries with delivery, by ISO 3166 code."""

import unicodedata

from django.utils.translation import gettext_lazy as _

COUNTRIES = {
    "AT": _("Austria"),
    "BE": _("Belgium"),
    "CH": _("Switzerland"),
    "DE": _("Germany"),
    "DK": _("Denmark"),
    "ES": _("Spain"),
    "FI": _("Finland"),
    "FR": _("France"),
    "IE": _("Ireland"),
    "IT": _("Italy"),
    "LU": _("Luxembourg"),
    "NL": _("Netherlands"),
    "PL": _("Poland"),
    "PT": _("Portugal"),
    "SE": _("Sweden"),
}
FIRST = "DE"  # where most parcels go: what is offered until a customer chooses


def choices() -> list[tuple[str, str]]:
    """Return code and name of each country, sorted as readers of the active language expect."""
    named = [(code, str(name)) for code, name in COUNTRIES.items()]
    return sorted(named, key=lambda country: sort_key(country[1]))


def sort_key(text: str) -> str:
    """Return the sort key of a text: its letters without accents and case.

    That is the order of English dictionaries and of German ones (DIN 5007-1): “Österreich” is among
    the words with O.
    """
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in parts if not unicodedata.combining(letter))
