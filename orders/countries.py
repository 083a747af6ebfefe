"""The countries with delivery, by ISO 3166 code."""

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
