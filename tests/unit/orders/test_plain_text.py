"""Texts of customers show what they are, on pages, in forms and by the API."""

import re
import unicodedata

import pytest
from pydantic import TypeAdapter, ValidationError

from orders.api.schemas import NewOrder
from orders.lifecycle.plain_text import VISIBLE
from orders.shop.forms import AddressForm
from tests.support.applications import new_order

GOOD = [
    "Ada Lovelace",
    "Søren Ødegård-Þórsson",
    "文字 太郎",
    "محمد بن سلمان",
    "می‌خواهم",  # with a joiner inside
    "ক্‍ষ",
    "דוד כהן 7",
    "Zoe\u0308",
    "👩‍🚀 ❤️",
    "7",
]
HIDDEN = {
    "zero-width space": "\u200b",
    "only joiners": "\u200d\u200c",
    "soft hyphen": "A\u00adB",
    "override to the left": "Ada \u202ecelevoL",
    "isolate": "\u2066Ada\u2069",
    "mark to the right": "Ada\u200f",
    "Arabic mark": "\u061cAda",
    "byte order mark": "\ufeffAda",
    "tags": "Ada\U000e0041\U000e0064",
    "Hangul filler": "\u3164",
    "blank Braille": "\u2800",
    "line separator": "Ada\u2028Bob",
    "C1 control": "Ada\x9b",
    "control": "Ada\x01",
    "word joiner": "\u2060",
    "variation selector": "\ufe0f",
}
ORDER = TypeAdapter(NewOrder)


def by_api(name):
    order = new_order()
    order["address"] = {**order["address"], "name": name}
    try:
        return ORDER.validate_python(order).address.name == unicodedata.normalize("NFC", name)
    except ValidationError:
        return False


def by_form(name):
    return "name" not in AddressForm({"name": name}).errors


@pytest.mark.parametrize("name", GOOD)
def test_names_of_every_script_are_taken(name):
    assert (by_api(name), by_form(name)) == (True, True)


@pytest.mark.parametrize("name", HIDDEN.values(), ids=HIDDEN)
def test_hidden_characters_are_refused(name):
    assert (by_api(name), by_form(name)) == (False, False)


def test_no_format_character_but_joiners_is_taken():
    """Of all that Unicode has, but for signs of scripts that show, or shape what stands beside them."""
    formats = [
        chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in {"Cf", "Cc"}
    ]
    taken = {ch for ch in formats if re.match(VISIBLE, f"a{ch}b")}
    signs = re.compile("ARABIC|SYRIAC|KAITHI|EGYPTIAN")
    assert {ch for ch in taken if not signs.match(unicodedata.name(ch))} == {"\u200c", "\u200d"}
