"""JSON Schemas of what the agents take and give: people's corrections are held against them."""

from typing import Any

TEXT = {"type": "string", "minLength": 1}
POSITIVE = {"type": "integer", "minimum": 1}
CURRENCY = {"type": "string", "pattern": "^[A-Za-z]{3}$"}


def record(**fields: Any) -> dict[str, Any]:
    """Return the schema of an object that has exactly these fields."""
    return {**some(**fields), "additionalProperties": False}


def some(**fields: Any) -> dict[str, Any]:
    """Return the schema of an object that has these fields, and may have others."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def several(item: Any) -> dict[str, Any]:
    """Return the schema of a list of at least one such item."""
    return {"type": "array", "items": item, "minItems": 1}


ADDRESS = some(name=TEXT, street=TEXT, postcode=TEXT, city=TEXT, country=TEXT)
