"""Forms made from JSON Schemas: a field for each value, and nothing changed that nobody touched."""

import pytest
from django.http import QueryDict

from orchestration.schema_forms import SchemaForm

TEXT = {"type": "string", "minLength": 1}
ADDRESS = {
    "type": "object",
    "properties": {"street": TEXT, "city": TEXT},
    "required": ["street", "city"],
}
SCHEMA = {
    "type": "object",
    "properties": {
        "amount": {"type": "integer", "minimum": 1},
        "share": {"type": "number"},
        "express": {"type": "boolean"},
        "speed": {"enum": ["slow", "fast"]},
        "note": {"type": "string"},
        "address": ADDRESS,
        "lines": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["amount", "address", "lines"],
}
WAS = {
    "amount": 950,
    "share": 0.10,
    "express": True,
    "speed": "fast",
    "address": {"street": "Rue de Lyon 12\r\nback yard", "city": "Genève", "floor": 3},
    "lines": [{"sku": "a", "quantity": 1}],
    "unknown": {"kept": None},
}


def form_of(typed=None, *, schema=SCHEMA, was=WAS, **options) -> SchemaForm:
    return SchemaForm(typed, schema=schema, was=was, **options)


def as_typed(form, **changes) -> QueryDict:
    """Return what a browser sends for the form as it is shown, with some fields changed."""
    data = QueryDict(mutable=True)
    for leaf in form.leaves:
        # browsers end lines in text areas their own way
        data[leaf.name] = leaf.shown.replace("\n", "\r\n")
    for name, value in changes.items():
        data["value." + name.replace("__", ".")] = value
    return data


def value_of(schema=SCHEMA, was=WAS, **changes):
    form = form_of(as_typed(form_of(schema=schema, was=was), **changes), schema=schema, was=was)
    assert form.is_valid(), form.errors
    return form.value


def errors_of(schema=SCHEMA, was=WAS, **changes):
    form = form_of(as_typed(form_of(schema=schema, was=was), **changes), schema=schema, was=was)
    assert not form.is_valid()
    return dict(form.errors)


def test_each_value_has_a_field_of_its_kind():
    form = form_of()
    assert list(form.fields) == [
        "value.amount", "value.share", "value.express", "value.speed", "value.note",
        "value.address.street", "value.address.city", "value.lines",
    ]  # fmt: skip
    assert 'name="value.amount" value="950"' in str(form["value.amount"])
    assert "<textarea" in str(form["value.address.street"])
    assert '<option value="fast" selected>' in str(form["value.speed"])
    assert '<option value="true" selected>' in str(form["value.express"])
    assert '"sku": "a"' in form["value.lines"].initial
    assert form["value.amount"].help_text == "integer, at least 1"


def test_what_nobody_touched_stays_exactly_as_it_was():
    value = value_of()
    assert value == WAS
    assert value is not WAS
    assert repr(value["share"]) == "0.1"


@pytest.mark.parametrize(
    ("changes", "path", "expected"),
    [
        ({"amount": "1000"}, ["amount"], 1000),
        ({"share": "1"}, ["share"], 1),
        ({"express": "false"}, ["express"], False),
        ({"speed": "slow"}, ["speed"], "slow"),
        ({"note": " as it is "}, ["note"], " as it is "),
        ({"address__city": "Bern"}, ["address", "city"], "Bern"),
        ({"address__street": "a\r\nb"}, ["address", "street"], "a\nb"),
        ({"lines": '[{"sku": "b"}]'}, ["lines"], [{"sku": "b"}]),
    ],
)
def test_a_changed_value_is_read_as_its_kind(changes, path, expected):
    value = value_of(**changes)
    for name in path:
        value = value[name]
    assert value == expected
    assert type(value) is type(expected)


def test_an_optional_value_can_be_left_out_and_stays_out():
    assert "note" not in value_of()
    assert "share" not in value_of(share="")
    assert "speed" not in value_of(speed="")


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"amount": "0"}, "value.amount", "less than the minimum"),
        ({"amount": "nine"}, "value.amount", "not a JSON integer"),
        ({"amount": "9.5"}, "value.amount", "not of type"),
        ({"amount": ""}, "value.amount", "required"),
        ({"address__city": ""}, "value.address.city", "non-empty"),
        ({"lines": "[1]"}, "value.lines", "not of type"),
        ({"lines": "{"}, "value.lines", "not JSON"),
        ({"speed": "warp"}, "value.speed", "valid choice"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(changes, field, said):
    assert said in str(errors_of(**changes)[field])


def test_a_changed_field_says_what_it_was():
    form = form_of(as_typed(form_of(), amount="0"))
    assert form.fields["value.amount"].help_text == "integer, at least 1; it was: 950"
    assert "it was" not in form.fields["value.share"].help_text


def test_where_no_fields_are_declared_those_that_are_there_do():
    anything = {"type": "object"}
    assert value_of(anything, {"a": 1, "b": "x"}, b="y") == {"a": 1, "b": "y"}
    assert list(form_of(schema=anything, was={}).fields) == ["value"]
    typed = QueryDict(mutable=True)
    typed["value"] = '{"id": "r1"}'
    form = form_of(typed, schema=anything, was={})
    assert form.is_valid()
    assert form.value == {"id": "r1"}


def test_the_whole_can_be_typed_as_json():
    form = form_of(whole=True)
    assert list(form.fields) == ["value"]
    typed = as_typed(form)
    typed["value"] = typed["value"].replace("950", "951")
    again = form_of(typed, whole=True)
    assert again.is_valid()
    assert again.value == {**WAS, "amount": 951}
    typed["value"] = '{"amount": 1}'
    wrong = form_of(typed, whole=True)
    assert not wrong.is_valid()
    assert "'address' is a required property" in wrong.errors["value"]


def test_what_is_hidden_is_neither_shown_nor_changed():
    def veil(value):
        if isinstance(value, dict):
            return {name: veil(part) for name, part in value.items()}
        return "[hidden]" if value == "Genève" else value

    form = form_of(veil=veil, whole=True)
    assert "value" not in form.fields
    assert "value.address.city" not in form.fields
    assert [leaf.words for leaf in form.hidden] == ["address.city"]
    typed = as_typed(form, amount="1000")
    typed["value.address.city"] = "Bern"
    again = form_of(typed, veil=veil)
    assert again.is_valid()
    assert again.value == {**WAS, "amount": 1000}


@pytest.mark.parametrize(
    "typed",
    [
        '[{"a": NaN}]', '[{"a": -Infinity}]', '[{"a": 1e999}]', '[{"a": "\\u0000"}]',
        '[{"\\u0000": 1}]', '[{"a": "\\ud800"}]', '[{"a": ' + "9" * 5000 + "}]",
        "[" * 50_000, "[" * 60 + "]" * 60, '[{"a": 1}',
    ],
)  # fmt: skip
def test_what_looks_like_json_and_cannot_be_kept_is_refused(typed):
    (error,) = errors_of(lines=typed)["value.lines"]
    assert error.startswith("This is not JSON: ")
