"""Fields of a declaration that take a name, or the class or method that has this name."""

from typing import Any, Generic, TypeVar

Given = TypeVar("Given")
Name = TypeVar("Name")


class Named(Generic[Given, Name]):
    """A field that is read as a name; `given` returns what was written, for the checks at start-up.

    Of a class or method it is the `attribute`; what has none is left as it is, and is a mistake.
    """

    def __init__(self, default: Name, attribute: str) -> None:
        self.default = default
        self.attribute = attribute

    def __set_name__(self, owner: type, field: str) -> None:
        self.field = field

    def __get__(self, declared: Any, owner: Any = None) -> Name:
        if declared is None:
            return self.default  # of the dataclass
        value: Name = vars(declared)[self.field]
        return value

    def __set__(self, declared: Any, value: Given) -> None:
        by_itself = isinstance(value, str) or value is None
        name = value if by_itself else getattr(value, self.attribute, value)
        vars(declared).update({self.field: name, _written(self.field): value})


def given(declared: Any, field: str) -> Any:
    """Return what was written in a field that is read as a name."""
    return vars(declared)[_written(field)]


def _written(field: str) -> str:
    return f"{field} as written"
