"""The types of fields in bodies of the API."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from orders.currency import shop_currency
from orders.lifecycle.fields import MAX_LENGTH
from orders.lifecycle.plain_text import OPTIONAL, TRIMMED
from orders.normal import composed


def _number(value: object) -> object:
    """Reject true and "2" as numbers."""
    if isinstance(value, bool | str):
        raise ValueError("This must be a number.")  # noqa: TRY004 - pydantic asks for this one
    return value


# not pydantic's "strict": JSON has one kind of number, so 2.0 is an integer
NUMBER = BeforeValidator(_number)
Currency = Annotated[str, Field(description="ISO 4217.", examples=[shop_currency()])]
Amount = Annotated[int, Field(description="In minor units, as yen or cents.", examples=[4250])]
COMPOSED = BeforeValidator(composed)


def text(name: str, example: str) -> Any:
    """Return the type of a text field: printable, of limited length, without outer spaces."""
    field = Field(min_length=1, max_length=MAX_LENGTH[name], pattern=TRIMMED, examples=[example])
    return Annotated[str, field, COMPOSED]


def optional_text(name: str, example: str, what: str) -> Any:
    """Return the type of a text field that may be empty."""
    field = Field(
        max_length=MAX_LENGTH[name], pattern=OPTIONAL, examples=[example], description=what
    )
    return Annotated[str, field, COMPOSED]


def choice(values: list[str], what: str, *examples: str) -> Any:
    """Return what limits a text field to these values."""
    return Field(
        description=what,
        json_schema_extra={"enum": list(values)},
        pattern=f"^({'|'.join(values)})$",
        examples=list(examples) or None,
    )
