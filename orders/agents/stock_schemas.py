"""The shapes of stock: what is read of it, and what changes it."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from .json_schemas import TEXT, exact_object

NOT_READ = "not_read"  # code: the inventory answers, but says no levels
PAGE = 500  # SKUs: some of them in ten warehouses are less than a reply may have
LARGEST = 10**12
UNITS = {"type": "integer", "minimum": -LARGEST, "maximum": LARGEST}
NAME = {"type": "string", "minLength": 1, "maxLength": 60}
PART = {"type": ["string", "null"]}
Units = Annotated[int, Meta(ge=-LARGEST, le=LARGEST)]
Level = Annotated[list[Units], Meta(min_length=2, max_length=2)]
Warehouse = Annotated[str, Meta(min_length=1, max_length=60)]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the inventory answers: on hand and reserved, by SKU and warehouse; the last SKU of a page."""

    levels: dict[str, dict[Warehouse, Level]]
    next: str | None = None


# of one SKU, or of those that come after one in the order of code points
PAGE_OF = exact_object(sku=PART, after=PART)
LEVELS = exact_object(
    at={"type": "number", "minimum": 0, "maximum": 2**33},  # when it was asked, in Unix time
    sku={"type": "string"},
    after={"type": "string"},
    next={"type": "string"},
    levels={
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "propertyNames": NAME,
            "additionalProperties": {
                "type": "array",
                "items": UNITS,
                "minItems": 2,
                "maxItems": 2,
            },  # on hand, reserved
        },
    },
)
# `units` come in or go; with `expected`, they were counted, where that number should have been
ADJUSTMENT = exact_object(
    sku=TEXT,
    warehouse=NAME,
    units=UNITS,
    expected={"type": ["integer", "null"], "minimum": 0},
)
