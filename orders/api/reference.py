"""The API reference for people, rendered from the OpenAPI document.

django-ninja's Swagger page needs JavaScript, folds every operation, has no dark theme and fails the
accessibility checks that all pages pass.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from ninja import NinjaAPI
from ninja.openapi.docs import DocsBase

Json = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One field or parameter: `name` is its path, as in "lines[].sku"."""

    name: str
    kind: str
    required: bool
    meaning: str


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation of the page."""

    id: str
    method: str
    path: str
    summary: str
    tag: str
    paragraphs: list[str]
    scope: str
    parameters: list[Row]
    body: list[Row]
    body_example: str
    status: str
    answer: list[Row]
    answer_example: str
    problems: list[tuple[str, str]]


class Reference(DocsBase):
    """The page at /api/docs."""

    def render_page(self, request: HttpRequest, api: NinjaAPI, **_: Any) -> HttpResponse:
        """Render the page."""
        document = json.loads(json.dumps(api.get_openapi_schema(), default=str))
        return render(request, "api/reference.html", {"operations": list(operations(document))})


def operations(document: Json) -> Iterator[Operation]:
    """Yield every operation of an OpenAPI document, in its order."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield _operation(document, path, method, operation)


def _operation(document: Json, path: str, method: str, operation: Json) -> Operation:
    answers = operation["responses"]
    status = next(code for code in answers if code.startswith("2"))
    words, _, scope = operation["description"].partition("\n\nScope: ")
    body = operation.get("requestBody", {})
    return Operation(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=operation["summary"],
        tag=operation["tags"][0],
        paragraphs=[" ".join(part.split()) for part in words.split("\n\n")],
        scope=scope.strip("`."),
        parameters=[
            Row(
                name=parameter["name"],
                kind=_kind(parameter["schema"]),
                required=parameter["required"],
                meaning=parameter.get("description", ""),
            )
            for parameter in operation["parameters"]
        ],
        body=list(_fields(document, _schema(body))),
        body_example=_example(document, _schema(body)),
        status=status,
        answer=list(_fields(document, _schema(answers[status]))),
        answer_example=_example(document, _schema(answers[status])),
        problems=[
            (code, answer["description"]) for code, answer in answers.items() if code[0] in "45"
        ],
    )


def _schema(part: Json) -> Json:
    for content in part.get("content", {}).values():
        schema: Json = content["schema"]
        return schema
    return {}


def _resolve(document: Json, schema: Json) -> Json:
    """Return the schema behind a reference, or the one choice that is not null."""
    if choices := [choice for choice in schema.get("anyOf", []) if choice.get("type") != "null"]:
        return {**_resolve(document, choices[0]), **_described(schema)}
    if "$ref" not in schema:
        return schema
    name = schema["$ref"].rpartition("/")[2]
    return {**document["components"]["schemas"][name], **_described(schema)}


def _described(schema: Json) -> Json:
    return {name: schema[name] for name in ("description",) if name in schema}


def _fields(document: Json, schema: Json, before: str = "") -> Iterator[Row]:
    """Yield the fields of an object and of nested objects."""
    schema = _resolve(document, schema)
    required = set(schema.get("required", []))
    for name, declared in schema.get("properties", {}).items():
        inner = _resolve(document, declared)
        item = _resolve(document, inner.get("items", {}))
        is_object = bool(inner.get("properties") or item.get("properties"))
        path = f"{before}{name}{'[]' if inner.get('type') == 'array' else ''}"
        yield Row(
            name=path,
            kind=_kind(inner),
            required=name in required,
            meaning="" if is_object and "description" not in declared else _meaning(inner),
        )
        if is_object:
            yield from _fields(document, item if item.get("properties") else inner, f"{path}.")


def _meaning(schema: Json) -> str:
    words = [schema.get("description", "")]
    if "enum" in schema:
        words.append(f"One of {', '.join(schema['enum'])}.")
    return " ".join(word for word in words if word)


def _kind(schema: Json) -> str:
    kind = str(schema.get("format") or schema.get("type") or "object").replace("-", " ")
    bounds = [
        (schema.get(name), words)
        for name, words in (
            ("minimum", "from {}"), ("maximum", "to {}"), ("maxLength", "at most {} characters"),
            ("maxItems", "at most {}"),
        )
    ]  # fmt: skip
    bounded = " ".join(words.format(value) for value, words in bounds if value is not None)
    return f"{kind}, {bounded}" if bounded else kind


def _example(document: Json, schema: Json) -> str:
    examples = _resolve(document, schema).get("examples", [])
    if not examples:
        return ""
    text = json.dumps(examples[0], indent=2, ensure_ascii=False)
    # a short object stays on one line
    return re.sub(r"\{\s+([^{}\[\]]{1,90}?)\s+\}", lambda match: f"{{{_line(match[1])}}}", text)


def _line(text: str) -> str:
    return re.sub(r"\s*\n\s*", " ", text)
