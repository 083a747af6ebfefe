"""Fields of a declaration that take a name, or the class or method that has this name."""

from typing import Any, Generic, TypeVar

Written = TypeVar("Written")
Name = TypeVar("Name")


class Named(Generic[Written, Name]):
    """A field that is read as a name; `written` returns what was written, for the checks at start-up.

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

    def __set__(self, declared: Any, value: Written) -> None:
        by_itself = isinstance(value, str) or value is None
        name = value if by_itself else getattr(value, self.attribute, value)
        vars(declared).update({self.field: name, _as_written(self.field): value})


def written(declared: Any, field: str) -> Any:
    """Return what was written in a field that is read as a name."""
    return vars(declared)[_as_written(field)]


def _as_written(field: str) -> str:
    return f"{field} as written"
