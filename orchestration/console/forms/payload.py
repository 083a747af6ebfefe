"""A request or a result as JSON, checked against the schema of its action.

A user who may not see personal values gets them hidden: they can be neither read nor changed.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from django import forms

from ...agents import payload_schemas

Path = tuple[str | int, ...]
LIMITS = (
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
    ("minLength", "minimum length {}"),
    ("maxLength", "maximum length {}"),
    ("pattern", "pattern {}"),
)


class PayloadForm(forms.Form):
    """One JSON object; after validation, `value` is the object to use.

    `former` is the object that is corrected; without one, the required fields are offered as null.
    `redactor` hides personal values: they stay as they were, and a change of one is an error.
    """

    payload = forms.CharField(label="JSON", strip=False)

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        schema: Mapping[str, Any],
        former: Mapping[str, Any] | None = None,
        redactor: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(data)
        self.schema = schema
        self.former = dict(former) if former is not None else _skeleton(schema)
        self.shown = redactor(self.former) if redactor else self.former
        text = json.dumps(self.shown, ensure_ascii=False, indent=2)
        rows = min(30, text.count("\n") + 2)
        self.fields["payload"].initial = text
        self.fields["payload"].widget = forms.Textarea(
            attrs={"rows": rows, "spellcheck": "false", "class": "code"}
        )

    @property
    def expected(self) -> list[tuple[str, str]]:
        """Return the fields that the schema declares, each with what it must be."""
        return list(_expected(self.schema))

    @property
    def hidden(self) -> list[str]:
        """Return the paths of the values that are hidden."""
        return [_dotted(path) for path in _differences(self.former, self.shown)]

    def clean_payload(self) -> str:
        """Read the JSON, put hidden values back, and check the result against the schema."""
        text: str = self.cleaned_data["payload"]
        try:
            self.value: Any = payload_schemas.parse(text)
        except payload_schemas.Invalid as error:
            raise forms.ValidationError(f"This is not JSON: {error}.") from None
        hidden = list(_differences(self.former, self.shown))
        for path in hidden:
            if _at(self.value, path) != _at(self.shown, path):
                raise forms.ValidationError(
                    f"{_dotted(path)} is hidden, so it cannot be changed: restore its former text."
                )
        for path in hidden:
            self.value = _put(self.value, path, _at(self.former, path))
        if problems := payload_schemas.problems(self.schema, self.value):
            raise forms.ValidationError([_described(*problem, hidden) for problem in problems])
        return text


def _described(path: tuple[str, ...], problem: str, hidden: Iterable[Path]) -> str:
    """Return an error with its place; of a hidden value, or what holds one, without the value."""
    if any(tuple(map(str, other))[: len(path)] == path for other in hidden):
        problem = "it does not match the schema, and holds a hidden value"
    return f"{'.'.join(path) or 'The object'}: {problem}"


def _skeleton(schema: Mapping[str, Any]) -> dict[str, Any]:
    required = schema.get("required", ())
    return {name: _empty(schema.get("properties", {}).get(name, {})) for name in required}


def _empty(schema: Mapping[str, Any]) -> Any:
    return _skeleton(schema) if schema.get("properties") else None


def _expected(schema: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[str, str]]:
    required = schema.get("required", ())
    for name, inner in schema.get("properties", {}).items():
        words = [_kind(inner), "" if name in required else "optional"]
        words += [text.format(inner[key]) for key, text in LIMITS if key in inner]
        words.append(str(inner.get("description", "")))
        yield _dotted((*path, name)), ", ".join(word for word in words if word)
        yield from _expected(inner, (*path, name))


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(json.dumps(value) for value in schema["enum"])
    kind = schema.get("type", "any JSON")
    return kind if isinstance(kind, str) else " or ".join(kind)


def _differences(value: Any, shown: Any, path: Path = ()) -> Iterator[Path]:
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _differences(part, shown[name], (*path, name))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from _differences(part, shown[place], (*path, place))
    elif value != shown:
        yield path


def _at(value: Any, path: Path) -> Any:
    for name in path:
        try:
            value = value[name]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _put(value: Any, path: Path, part: Any) -> Any:
    holder = _at(value, path[:-1])
    holder[path[-1]] = part
    return value


def _dotted(path: Path) -> str:
    return ".".join(map(str, path))
