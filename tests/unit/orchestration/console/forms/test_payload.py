"""A payload as JSON in a form: read exactly, checked against its schema, hidden values kept."""

import json

import pytest

from orchestration.console.forms.payload import PayloadForm

TEXT = {"type": "string", "minLength": 1}
ADDRESS = {
    "type": "object",
    "properties": {"street": TEXT, "city": TEXT},
    "required": ["street", "city"],
}
SCHEMA = {
    "type": "object",
    "properties": {
        "amount": {"type": "integer", "minimum": 1, "description": "in cents"},
        "share": {"type": "number"},
        "speed": {"enum": ["slow", "fast"]},
        "address": ADDRESS,
        "lines": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["amount", "address", "lines"],
}
FORMER = {
    "amount": 950,
    "share": 0.10,
    "speed": "fast",
    "address": {"street": "Rue de Lyon 12\r\nback yard", "city": "Genève", "floor": 3},
    "lines": [{"sku": "a", "to": "Ada"}],
    "unknown": {"kept": None},
}


def redactor(value):
    if isinstance(value, dict):
        return {name: redactor(part) for name, part in value.items()}
    if isinstance(value, list):
        return [redactor(part) for part in value]
    return "[hidden]" if value in {"Genève", "Ada"} else value


def form_of(typed=None, *, schema=SCHEMA, former=FORMER, **options) -> PayloadForm:
    text = typed if typed is None or isinstance(typed, str) else json.dumps(typed)
    data = None if text is None else {"payload": text}
    return PayloadForm(data, schema=schema, former=former, **options)


def shown(form) -> str:
    """Return the text of the form as a browser sends it back."""
    return form["payload"].value().replace("\n", "\r\n")


def errors(form) -> list[str]:
    assert not form.is_valid()
    return list(form.errors["payload"])


def test_an_untouched_payload_stays_exactly_as_it_was():
    form = form_of(shown(form_of()))
    assert form.is_valid(), form.errors
    assert form.value == FORMER
    assert list(form.value) == list(FORMER)
    assert repr(form.value["share"]) == "0.1"


def test_a_changed_value_is_taken_with_its_type():
    form = form_of({**FORMER, "amount": 1000, "speed": "slow"})
    assert form.is_valid(), form.errors
    assert form.value == {**FORMER, "amount": 1000, "speed": "slow"}
    assert type(form.value["amount"]) is int


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"amount": 0}, "amount"),
        ({"amount": "nine"}, "amount"),
        ({"amount": 9.5}, "amount"),
        ({"address": {"street": "a", "city": ""}}, "address.city"),
        ({"lines": [1]}, "lines.0"),
        ({"speed": "warp"}, "speed"),
    ],
)
def test_an_error_names_its_place(change, place):
    (error,) = errors(form_of({**FORMER, **change}))
    assert error.startswith(f"{place}: ")


def test_a_missing_value_is_an_error_of_its_object():
    (error,) = errors(form_of({"amount": 1, "lines": [], "address": {"street": "a"}}))
    assert error.startswith("address: ")
    assert "city" in error


@pytest.mark.parametrize("typed", ["", "[1", "{'a': 1}", '{"a": NaN}', '{"a": "\\u0000"}'])
def test_text_that_is_not_json_is_an_error(typed):
    assert errors(form_of(typed))


def test_a_new_payload_offers_the_required_fields_to_fill_in():
    form = form_of(former=None)
    assert json.loads(shown(form)) == {
        "amount": None,
        "address": {"street": None, "city": None},
        "lines": None,
    }
    assert {error.partition(":")[0] for error in errors(form_of(shown(form), former=None))} == {
        "amount", "address.street", "address.city", "lines",
    }  # fmt: skip


def test_a_payload_without_declared_fields_may_be_any_object():
    form = form_of({"id": "r1"}, schema={"type": "object"}, former=None)
    assert form.is_valid()
    assert form.value == {"id": "r1"}
    assert form.expected == []


def test_the_schemas_fields_are_listed_with_what_they_must_be():
    assert form_of().expected == [
        ("amount", "integer, at least 1, in cents"),
        ("share", "number, optional"),
        ("speed", 'one of "slow", "fast", optional'),
        ("address", "object"),
        ("address.street", "string, minimum length 1"),
        ("address.city", "string, minimum length 1"),
        ("lines", "array"),
    ]


class TestHiddenValues:
    def test_are_not_shown_and_stay_as_they_were(self):
        form = form_of(redactor=redactor)
        assert "Genève" not in shown(form)
        assert form.hidden == ["address.city", "lines.0.to"]
        typed = {**redactor(FORMER), "amount": 1000}
        again = form_of(typed, redactor=redactor)
        assert again.is_valid(), again.errors
        assert again.value == {**FORMER, "amount": 1000}

    @pytest.mark.parametrize(
        "change",
        [
            {"address": {"street": "a", "city": "Bern"}},
            {"address": {"street": "a"}},
            {"address": None},
            {"lines": []},
            {"lines": [{"to": "Grace"}]},
        ],
    )
    def test_cannot_be_changed_or_removed(self, change):
        (error,) = errors(form_of({**redactor(FORMER), **change}, redactor=redactor))
        assert "hidden" in error

    def test_are_not_named_by_an_error(self):
        short = {
            "type": "object",
            "properties": {"address": {"properties": {"city": {"maxLength": 2}}}},
        }
        (error,) = errors(form_of(redactor(FORMER), schema=short, redactor=redactor))
        assert error.startswith("address.city: ")
        assert "Genève" not in error

    def test_are_not_named_by_an_error_of_what_holds_them(self):
        text = {"type": "object", "properties": {"address": {"type": "string"}}}
        (error,) = errors(form_of(redactor(FORMER), schema=text, redactor=redactor))
        assert "Genève" not in error
