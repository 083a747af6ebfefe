"""JSON Schemas of the agents' payloads and results; corrections by operators must match them."""

from typing import Any

TEXT = {"type": "string", "minLength": 1}
POSITIVE = {"type": "integer", "minimum": 1}
MOMENT = {"type": ["string", "null"]}
CURRENCY = {"type": "string", "pattern": "^[A-Za-z]{3}$"}


def exact_object(**fields: Any) -> dict[str, Any]:
    """Return the schema of an object with exactly these fields."""
    return {**open_object(**fields), "additionalProperties": False}


def optional(schema: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the schema of an object that may lack these fields."""
    return {**schema, "required": [name for name in schema["required"] if name not in names]}


def open_object(**fields: Any) -> dict[str, Any]:
    """Return the schema of an object with at least these fields."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def non_empty_list(item: Any) -> dict[str, Any]:
    """Return the schema of a list with at least one item."""
    return {"type": "array", "items": item, "minItems": 1}


ADDRESS = open_object(name=TEXT, street=TEXT, city=TEXT, country=TEXT)  # some lack a postcode
