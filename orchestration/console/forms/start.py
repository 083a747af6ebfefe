"""The input of a task that is started by hand: a field for each that its workflow takes."""

from collections.abc import Mapping
from typing import Any

from django import forms

from ...agents import payload_schemas
from ...applications.by_hand import REFERENCE
from .actions import ReasonForm

LONGEST = 100_000  # characters of JSON
OTHERS = "$others"  # what no field is named after


class StartForm(ReasonForm):
    """Why a task is started; `reference` is its own, so that a form that is sent twice starts one."""

    reference = forms.RegexField(
        rf"^(?:{REFERENCE.pattern})\Z", strip=False, widget=forms.HiddenInput
    )


class JsonField(forms.CharField):
    """Any JSON value; None if nothing was typed."""

    def __init__(self, *, rows: int, **options: Any) -> None:
        code = {"rows": rows, "spellcheck": "false", "class": "code"}
        super().__init__(max_length=LONGEST, widget=forms.Textarea(attrs=code), **options)

    def clean(self, value: Any) -> Any:
        """Read the JSON."""
        text: str = super().clean(value)
        if not text:
            return None
        try:
            return payload_schemas.parse(text)
        except payload_schemas.Invalid as error:
            raise forms.ValidationError(f"This is not JSON: {error}.") from None


class InputForm(forms.Form):
    """A field for each one that a schema declares, and JSON for all else; `value` is the input."""

    def __init__(self, data: Mapping[str, Any] | None, schema: Mapping[str, Any]) -> None:
        super().__init__(data, prefix="input")
        self.schema = schema
        self.value: dict[str, Any] = {}
        required = schema.get("required", ())
        for name, inner in schema.get("properties", {}).items():
            self.fields[name] = _field(inner, label=name, required=name in required)
        self.fields[OTHERS] = JsonField(
            rows=3,
            required=False,
            label="Other fields" if self.fields else "Input",
            help_text="A JSON object, such as {}. Its fields are added to the input.",
        )

    def clean(self) -> dict[str, Any]:
        """Put the fields together, and check the whole against the schema."""
        typed: dict[str, Any] = super().clean() or self.cleaned_data
        others = typed.pop(OTHERS, None)
        others = {} if others is None else others
        if not isinstance(others, dict):
            self.add_error(OTHERS, "This is not a JSON object.")
        if self.errors:
            return typed
        named = {name: value for name, value in typed.items() if value is not None and value != ""}
        self.value = others | named
        for path, problem in payload_schemas.problems(self.schema, self.value):
            place = path[0] if path and path[0] in self.fields else None
            self.add_error(place, ": ".join(filter(None, [".".join(path[1:]), problem])))
        return typed


def _field(schema: Mapping[str, Any], **options: Any) -> forms.Field:
    """Return the field for values of a schema."""
    optional = "" if options["required"] else "Optional."
    options["help_text"] = f"{optional} {schema.get('description', '')}".strip()
    choices = schema.get("enum", ())
    if choices and all(isinstance(choice, str) for choice in choices):
        return forms.ChoiceField(
            choices=[("", ""), *((choice, choice) for choice in choices)], **options
        )
    match schema.get("type"):
        case "string":
            widget = forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"})
            return forms.CharField(max_length=LONGEST, widget=widget, **options)
        case "integer":
            return forms.IntegerField(**options)
        case "number":
            return forms.FloatField(**options)
    options["help_text"] = f"JSON, with text in quotes. {options['help_text']}".strip()
    return JsonField(rows=2, **options)
