"""Hide credentials in what is kept of an attempt: by the names of fields, by known forms, by value."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

HIDDEN = "[secret]"
SHORTEST = 6  # characters of a credential that is hidden wherever it stands

# Parts of names: "client_secret", "x-api-key", "Set-Cookie".
_NAMES = (
    r"secret|token|passw(?:or)?d|passphrase|api[_-]?key|authorization|credential|cookie"
    r"|private[_-]?key|signature"
)
_NAMED = re.compile(rf"{_NAMES}|^(?:auth|pin|cvc|cvv|cvn|pan|card[_-]?number)$", re.IGNORECASE)
_FORMS = (
    # the value of a header or parameter, with its scheme
    re.compile(
        rf"((?<![\w])[\w-]*(?:{_NAMES})[\w-]*[\"']?\s*[:=]\s*[\"']?"
        r"(?:(?:bearer|basic|digest|token)\s+)?)[^\s\"',;&}\])]+",
        re.IGNORECASE,
    ),
    re.compile(r"(\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}", re.IGNORECASE),
    re.compile(r"(://[^/\s:@]*:)[^/\s@]+(?=@)"),  # the password of an address
    re.compile(r"(\b)(?:sk|rk|pk|whsec)_\w{8,}"),
    re.compile(r"(\b)eyJ[\w-]+\.[\w-]+\.[\w-]+"),  # a JSON web token
)


def is_secret_name(name: str) -> bool:
    """Return whether a field, header or parameter of this name holds a credential."""
    return _NAMED.search(name) is not None


def without_secrets(value: Any, known: Iterable[str] = ()) -> Any:
    """Return a text, or any JSON value, without credentials; `known` are hidden wherever they stand."""
    longest_first = tuple(
        sorted({secret for secret in known if len(secret) >= SHORTEST}, key=len, reverse=True)
    )
    return _without(value, longest_first)


def _without(value: Any, known: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return _text(value, known)
    if isinstance(value, Mapping):
        return {
            name: HIDDEN
            if is_secret_name(name) and isinstance(part, str | int | float)
            else _without(part, known)
            for name, part in value.items()
        }
    if isinstance(value, list):
        return [_without(part, known) for part in value]
    return value


def _text(text: str, known: tuple[str, ...]) -> str:
    for secret in known:
        text = text.replace(secret, HIDDEN)
    for form in _FORMS:
        text = form.sub(rf"\1{HIDDEN}", text)
    return text
