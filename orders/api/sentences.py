"""What is wrong with a field of a request: the sentences of the shop's forms, or as short ones."""

from collections.abc import Mapping
from typing import Any

from orders.lifecycle.message import LANGUAGES
from orders.shop.forms import CheckoutForm, shown

NUMBER = "This must be a whole number."
NAME = "Only letters, digits, dots, hyphens and underscores are allowed."
KINDS = {  # by pydantic's types of errors, with their parameters
    "missing": "This is missing.",
    "extra_forbidden": "This field is unknown.",
    "string_type": "This must be a string.",
    "string_too_short": "This is empty.",
    "string_too_long": "At most {max_length} characters are allowed.",
    "string_pattern_mismatch": str(shown.message),
    "int_type": NUMBER,
    "int_parsing": NUMBER,
    "int_parsing_size": NUMBER,
    "int_from_float": NUMBER,
    "value_error": NUMBER,
    "greater_than_equal": "This must be {ge} or more.",
    "less_than_equal": "This must be {le} or less.",
    "list_type": "This must be a list.",
    "too_short": "This needs {min_length} or more.",
    "too_long": "At most {max_length} are allowed.",
    "model_type": "This must be an object.",
    "model_attributes_type": "This must be an object.",
}
PATTERNS = {  # by field
    "cursor": "Take the cursor from `next` of the page before.",
    "fairness_key": NAME,
    "language": f"This must be one of {', '.join(sorted(LANGUAGES))}.",
    "sku": NAME,
}
OF_FORM = {  # a form's codes, by pydantic's types
    "missing": ("required",),
    "string_too_short": ("required",),
    "string_too_long": ("max_length",),
    "string_pattern_mismatch": ("invalid_choice", "invalid"),
}


def sentence(error: Mapping[str, Any]) -> str:
    """Return what is wrong, for people: without regular expressions and names of types."""
    name, kind, values = str(error["loc"][-1]), str(error["type"]), error.get("ctx", {})
    field = CheckoutForm().fields.get(name)
    if field is not None:
        for code in OF_FORM.get(kind, ()):
            if words := field.error_messages.get(code):
                return str(words) % {"limit_value": values.get("max_length", 0)}
    if kind == "string_pattern_mismatch" and name in PATTERNS:
        return PATTERNS[name]
    return KINDS.get(kind, "This is not valid.").format(**values)
