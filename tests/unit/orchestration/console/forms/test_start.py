"""The typed fields of a task's input."""

import pytest

from orchestration.console.forms.start import OTHERS, InputForm

SCHEMA = {
    "type": "object",
    "required": ["name", "count"],
    "properties": {
        "name": {"type": "string", "maxLength": 5},
        "count": {"type": "integer", "minimum": 1},
        "share": {"type": "number"},
        "size": {"enum": ["small", "large"]},
        "to": {"type": "object", "required": ["street"], "properties": {"street": {}}},
        "free": {},
    },
}
TYPED = {"name": "Ada", "count": "2"}


def sent(**typed):
    form = InputForm({f"input-{name}": value for name, value in typed.items()}, SCHEMA)
    form.is_valid()
    return form


def test_values_have_the_types_of_their_fields():
    form = sent(**TYPED, share="0.5", size="large", to='{"street": "S"}', free="[1]")
    assert not form.errors
    assert form.value == {
        "name": "Ada",
        "count": 2,
        "share": 0.5,
        "size": "large",
        "to": {"street": "S"},
        "free": [1],
    }


def test_what_is_left_empty_is_left_out_and_other_fields_are_added():
    form = sent(**TYPED, **{OTHERS: '{"more": null, "count": 9}'})
    assert form.value == {"name": "Ada", "count": 2, "more": None}


@pytest.mark.parametrize(
    ("typed", "wrong"),
    [
        ({"name": ""}, "name"),
        ({"name": "too long"}, "name"),
        ({"count": "0"}, "count"),
        ({"count": "x"}, "count"),
        ({"size": "medium"}, "size"),
        ({"to": "{}"}, "to"),
        ({"to": "{"}, "to"),
        ({"free": "NaN"}, "free"),
        ({OTHERS: "[]"}, OTHERS),
        ({OTHERS: '{"a": "\\u0000"}'}, OTHERS),
    ],
)
def test_wrong_values_are_named_by_their_fields(typed, wrong):
    form = sent(**{**TYPED, **typed})
    assert list(form.errors) == [wrong]


def test_input_of_an_unknown_form_is_one_json_object():
    form = InputForm({f"input-{OTHERS}": '{"a": 1}'}, {"type": "object"})
    assert form.is_valid()
    assert (list(form.fields), form.value) == ([OTHERS], {"a": 1})
