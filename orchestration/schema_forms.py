"""Forms made from JSON Schemas: a field for each value of an object, checked against the schema.

Values that nobody touched stay exactly as they were, whatever a browser makes of them; so do those
that are not shown. What no plain field can hold (lists, objects of any shape) is typed as JSON.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from django import forms

from . import schemas

Path = tuple[str, ...]
LONG = 70  # characters beyond which a text gets more than a line
PREFIX = "value"


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """One value of an object: where it is, what it may be, and what it was."""

    path: Path
    schema: Mapping[str, Any]
    required: bool
    there: bool
    was: Any

    @property
    def name(self) -> str:
        """Return the field's name in the form."""
        return ".".join((PREFIX, *self.path))

    @property
    def words(self) -> str:
        """Return where it is, in words."""
        return ".".join(self.path) or "the whole of it, as JSON"

    @property
    def shown(self) -> str:
        """Return the former value as the field shows it."""
        if not self.there:
            return ""
        if self.kind in {"string", "choice"} and isinstance(self.was, str):
            return _unix(self.was)
        if self.kind == "boolean":
            return "true" if self.was else "false"
        return json.dumps(self.was, ensure_ascii=False, indent=2)

    @property
    def kind(self) -> str:
        """Return the JSON type, or "json" where it can be several or is not a plain one."""
        if all(isinstance(one, str) for one in self.schema.get("enum", ())) and (
            "enum" in self.schema
        ):
            return "choice"
        kind = self.schema.get("type")
        plain = ("string", "integer", "number", "boolean")
        return kind if isinstance(kind, str) and kind in plain else "json"

    def field(self) -> forms.Field:
        """Return the form's field."""
        options: dict[str, Any] = {
            "label": self.words,
            "required": self.required and self.kind != "boolean",
            "initial": self.shown,
            "help_text": _hint(self.schema, self.kind),
        }
        if self.kind in {"choice", "boolean"}:
            words = self.schema["enum"] if self.kind == "choice" else ("true", "false")
            none = [] if self.required else [("", "none")]
            return forms.ChoiceField(choices=[*none, *((word, word) for word in words)], **options)
        widget: forms.Widget = forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"})
        text = self.shown
        if self.kind == "json" or len(text) > LONG or "\n" in text:
            rows = min(16, max(3, text.count("\n") + 1, len(text) // LONG + 1))
            widget = forms.Textarea(attrs={"rows": rows, "spellcheck": "false"})
        # an empty text may be what the schema allows: it decides, not the field
        options["required"] = options["required"] and self.kind != "string"
        return forms.CharField(strip=False, widget=widget, **options)

    def read(self, text: str) -> Any:
        """Return the value that was typed; raise `ValueError` if it is none of its kind."""
        text = _unix(text)
        if text == self.shown:
            return self.was
        if self.kind in {"string", "choice"}:
            return text
        if self.kind == "boolean":
            return text == "true"
        try:
            return schemas.parse(text)
        except schemas.Invalid as error:
            what = "JSON" if self.kind == "json" else f"a JSON {self.kind}"
            raise ValueError(f"This is not {what}: {error}.") from None


class SchemaForm(forms.Form):
    """The values of an object, one by one; what the `veil` hides is neither shown nor changed."""

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        schema: Mapping[str, Any],
        was: Mapping[str, Any],
        veil: Callable[[Any], Any] | None = None,
        whole: bool = False,
    ) -> None:
        super().__init__(data)
        self.schema, self.was = schema, was
        hides = veil is not None and veil(dict(was)) != was
        found = [_root(schema, was)] if whole and not hides else leaves(schema, was)
        self.leaves = [leaf for leaf in found if not veil or veil(leaf.was) == leaf.was]
        self.hidden = [leaf for leaf in found if leaf not in self.leaves]
        for leaf in self.leaves:
            field = self.fields[leaf.name] = leaf.field()
            if data is not None and _unix(str(data.get(leaf.name, ""))) != leaf.shown:
                field.help_text = f"{field.help_text}; it was: {leaf.shown}".lstrip("; ")

    def clean(self) -> dict[str, Any]:
        """Put the values together, and hold the whole against the schema."""
        cleaned = super().clean() or {}
        self.value: Any = deepcopy(dict(self.was))
        for leaf in self.leaves:
            if leaf.name in cleaned:
                self._take(leaf, cleaned[leaf.name])
        if not self.errors:
            self._hold_against_schema()
        return cleaned

    def _take(self, leaf: Leaf, text: str) -> None:
        absent = not text and not leaf.required and (not leaf.there or leaf.shown != "")
        try:
            if not leaf.path:
                self.value = leaf.read(text)
            elif absent:
                _drop(self.value, leaf.path)
            elif text or leaf.there or leaf.required:
                _put(self.value, leaf.path, leaf.read(text))
        except ValueError as error:
            self.add_error(leaf.name, str(error))

    def _hold_against_schema(self) -> None:
        by_path = {leaf.path: leaf.name for leaf in self.leaves}
        for where, wrong in schemas.problems(self.schema, self.value):
            near = next((by_path[p] for p in _upwards(where) if p in by_path), None)
            inside = ".".join(where)
            self.add_error(near, wrong if near else f"{inside or 'All of it'}: {wrong}")


def leaves(schema: Mapping[str, Any], was: Any, path: Path = (), there: bool = True) -> list[Leaf]:
    """Return the values that a schema and the former value name, in the schema's order."""
    properties = schema.get("properties")
    if not properties or (there and not isinstance(was, Mapping)):
        if not path and isinstance(was, Mapping) and was:
            # no names are declared: those that are there do
            properties = {name: schemas.shape(value) for name, value in was.items()}
        else:
            return [Leaf(path=path, schema=schema, required=True, there=there, was=was)]
    found = []
    required = set(schema.get("required", ()))
    for name, inner in properties.items():
        inside = there and isinstance(was, Mapping) and name in was
        value = was[name] if inside else None
        if inner.get("properties") and (inside or name in required):
            found += leaves(inner, value, (*path, name), inside)
        else:
            found.append(
                Leaf(
                    path=(*path, name),
                    schema=inner,
                    required=name in required,
                    there=inside,
                    was=value,
                )
            )
    return found


def _root(schema: Mapping[str, Any], was: Any) -> Leaf:
    return Leaf(path=(), schema={**schema, "type": None}, required=True, there=True, was=was)


def _hint(schema: Mapping[str, Any], kind: str) -> str:
    """Return what a value must be, in a few words."""
    if "description" in schema:
        return str(schema["description"])
    told = [] if kind in {"string", "choice", "boolean"} else [kind if kind != "json" else "JSON"]
    told += [
        f"{words} {schema[name]}"
        for name, words in (
            ("minimum", "at least"),
            ("maximum", "at most"),
            ("maxLength", "at most, in characters:"),
            ("pattern", "as in"),
        )
        if name in schema
    ]
    return ", ".join(told)


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def _put(value: dict[str, Any], path: Path, item: Any) -> None:
    for name in path[:-1]:
        value = value.setdefault(name, {})
    value[path[-1]] = item


def _drop(value: dict[str, Any], path: Path) -> None:
    for name in path[:-1]:
        value = value.get(name, {})
    value.pop(path[-1], None)


def _upwards(path: Path) -> Iterable[Path]:
    return (path[:end] for end in range(len(path), -1, -1))
