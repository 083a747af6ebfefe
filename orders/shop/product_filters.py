"""Filters of the product grid; their state is in the URL."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.db.models import Q, QuerySet
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from orders.models import Product
from orders.models.product import Sold
from orders.money import whole, whole_money

from .forms import CustomerForm, Text

PRICES = {  # by name: from, below; of about a euro
    "under-10": (_("Under %(below)s"), 0, 10),
    "10-to-30": (_("%(least)s to %(below)s"), 10, 30),
    "over-30": (_("%(least)s and more"), 30, None),
}
MOST_WORDS = 6


class Filters(CustomerForm):
    """Shelf, price and words; an invalid value filters nothing."""

    q = Text(
        label=_("Search"),
        required=False,
        max_length=80,
        widget=forms.TextInput(attrs={"type": "search", "autocomplete": "off"}),
    )
    price = forms.ChoiceField(
        label=_("Price"),
        required=False,
        choices=lambda: [("", _("Any price")), *((name, _words(name)) for name in PRICES)],
    )

    def __init__(self, data: Mapping[str, Any], *, kinds: Sequence[str]) -> None:
        super().__init__(data)
        choices = [("", _("All shelves")), *((kind, gettext(kind)) for kind in kinds)]
        self.fields["kind"] = forms.ChoiceField(label=_("Shelf"), required=False, choices=choices)
        self.order_fields(["q", "kind", "price"])
        self.is_valid()
        self.chosen = {name: value for name, value in self.cleaned_data.items() if value}

    @property
    def query(self) -> str:
        """The query string for the same products."""
        return f"?{urlencode(self.chosen)}" if self.chosen else ""

    def narrow(self, products: Sold) -> Sold:
        """Return the products with the shelf, the price and each of the words."""
        if kind := self.chosen.get("kind"):
            products = products.filter(kind=kind)
        if price := self.chosen.get("price"):
            _words, least, below = PRICES[price]
            most = None if below is None else below * whole()
            products = products.costing(least * whole(), most)
        words = self.chosen.get("q", "").split()[:MOST_WORDS]
        shown = _shown(products) if words else {}
        for word in words:
            products = products.filter(
                Q(name__icontains=word)
                | Q(kind__icontains=word)
                | Q(summary__icontains=word)
                | Q(description__icontains=word)
                | Q(sku__in=[sku for sku, text in shown.items() if word.casefold() in text])
            )
        return products


def _words(name: str) -> str:
    """Return a range of prices in words, without decimals."""
    words, least, below = PRICES[name]
    values = {"least": whole_money(least), "below": whole_money(below or 0)}
    return str(words) % values


def _shown(products: QuerySet[Product]) -> dict[str, str]:
    """Return each product's text in the visitor's language, unless that is English."""
    if (get_language() or "en") == "en":
        return {}
    rows = products.values_list("sku", "name", "kind", "summary", "description")
    return {sku: " ".join(map(gettext, filter(None, texts))).casefold() for sku, *texts in rows}
