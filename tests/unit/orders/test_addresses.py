"""Addresses by country: postcodes, counties and provinces, lines and labels."""

import pytest
from django.utils import translation

from orders.addresses import country, is_street, label, lines, needs_postcode
from orders.countries import COUNTRIES, choices
from orders.lifecycle.fields import MAX_LENGTH
from orders.shop.forms import AddressForm, CheckoutForm

ADA = {"name": "Ada", "street": "Weg 12", "postcode": "10435", "city": "Berlin", "country": "DE"}


def codes(**changes):
    """Return the codes of the errors of an address, by field."""
    errors = AddressForm({**ADA, **changes}).errors.as_data()
    return {name: [error.code for error in of_field] for name, of_field in errors.items()}


@pytest.mark.parametrize("code", COUNTRIES)
def test_country_has_fields_and_an_example_that_it_takes(code):
    rules = country(code)
    names = [name for row in rules.rows for name in row]
    assert {"street", "postcode", "city"} <= set(names)
    assert ("region" in names) == bool(rules.regions) == (code in {"ES", "IE", "IT"})
    assert rules.read_postcode(rules.postcode_example) == rules.postcode_example
    assert rules.read_postcode("1") is rules.read_postcode("") is None
    assert all(len(region) <= MAX_LENGTH["region"] for region in rules.regions)


@pytest.mark.parametrize(
    ("code", "typed", "written"),
    [
        ("DE", " 10435 ", "10435"),
        ("DE", "D-10435", "10435"),
        ("DE", "DE 10435", "10435"),
        ("DE", "1043", None),
        ("DE", "١٠٤٣٥", None),
        ("CH", "ch-1203", "1203"),
        ("NL", "1015 dz", "1015 DZ"),
        ("PL", "00-950", "00-950"),
        ("IE", "t12  w8kp", "T12 W8KP"),
        ("IE", "D02 AF30", "D02 AF30"),
        ("SE", "114 55", "114 55"),
    ],
)
def test_postcode_is_read_as_people_type_it(code, typed, written):
    assert country(code).read_postcode(typed) == written


@pytest.mark.parametrize(
    ("code", "typed", "postcode", "region"),
    [
        ("ES", "", "28001", "M"),
        ("ES", "madrid", "08001", "M"),
        ("ES", "CADIZ", "", "CA"),
        ("ES", "Lisboa", "28001", None),
        ("IT", "", "16124", "GE"),
        ("IT", "ge", "", "GE"),
        ("IT", "", "99999", ""),
        ("IE", "cork", "", "Co. Cork"),
        ("IE", "County Cork", "", "Co. Cork"),
        ("IE", "", "T12 W8KP", ""),
        ("DE", "Bayern", "80331", ""),
    ],
)
def test_region_is_read_by_code_name_or_postcode(code, typed, postcode, region):
    assert country(code).read_region(typed, postcode) == region


def test_lines_are_in_the_countrys_order():
    ada = {"name": "Ada", "street": "Weg 1", "postcode": "16124", "city": "Genova", "region": "GE"}
    assert lines({**ada, "country": "IT"})[:3] == ["Ada", "Weg 1", "16124 Genova GE"]
    assert label({**ada, "country": "IT"}) == ["Ada", "Weg 1", "16124 GENOVA GE", "ITALY"]
    assert label({**ada, "country": "ES", "region": "M"})[2:] == ["16124 GENOVA MADRID", "SPAIN"]
    capital = {**ada, "country": "ES", "region": "M", "postcode": "28001", "city": "Madrid"}
    assert lines(capital)[2] == "28001 Madrid"
    irish = {**ada, "country": "IE", "region": "Co. Cork", "city": "Cork", "postcode": ""}
    for language, ireland in (("en", "Ireland"), ("de", "Irland")):
        with translation.override(language):
            assert lines(irish) == ["Ada", "Weg 1", "Cork", "Co. Cork", ireland]
    assert label(ADA)[-1] == "GERMANY"
    assert label({**ADA, "country": "XX"})[-1] == "XX"  # of a former country with delivery


def test_street_is_more_than_a_letter_and_a_digit():
    assert not is_street("S 1")
    assert not is_street("- 12")
    assert is_street("S 1, 5")  # Mannheim
    assert is_street("Lía 3")


def test_countries_are_sorted_as_the_language_does():
    def first(language):
        with translation.override(language):
            return [code for code, _ in choices()]

    assert first("en")[:4] == ["AT", "BE", "DK", "FI"]
    german = first("de")
    assert german[:3] == ["BE", "DK", "DE"]
    assert german[german.index("AT") - 1] == "NL"  # Österreich after Niederlande, before Polen
    assert german[german.index("AT") + 1] == "PL"


def test_address_form_has_the_rules_of_the_country():
    assert codes() == {}
    assert codes(postcode="1", street="S 1") == {"postcode": ["invalid"], "street": ["short"]}
    assert codes(postcode="") == {"postcode": ["required"]}
    assert codes(country="IE", postcode="") == {}
    assert codes(country="IE", postcode="", region="Kent") == {"region": ["required"]}
    assert codes(country="IT", postcode="99999") == {"region": ["required"]}
    assert codes(country="IT", postcode="1") == {"postcode": ["invalid"]}
    assert codes(country="XX", postcode="1") == {"country": ["invalid_choice"]}
    spanish = AddressForm({**ADA, "country": "ES", "postcode": "28001"})
    assert spanish.is_valid()
    assert spanish.address().region == "M"
    example = country("DE").postcode_example
    assert example in AddressForm({**ADA, "postcode": "1"}).errors["postcode"][0]


def test_details_without_a_region_are_those_of_the_former_release():
    form = CheckoutForm({**ADA, "email": "ada@example.org", "payment_method": "pm_card_visa"})
    assert form.is_valid()
    assert "region" not in form.details
    assert needs_postcode("DE")
    assert not needs_postcode("IE")


@pytest.mark.parametrize("text", ["a\0b", "a\u202eb"])
def test_hidden_character_has_one_sentence(text):
    assert codes(city=text) == {"city": ["hidden"]}
