"""One text for what reads the same: composed letters, one form of a domain, one name of an account.

Keyboards and programs write é as one sign or as two, and bücher.example also as xn--bcher-kva.example.
"""

import unicodedata
from typing import Any

import idna
from django.core.validators import EmailValidator

LONGEST_DOMAIN = 255  # characters; longer ones are compared as they are


class CustomerEmail(EmailValidator):
    """An address that letters arrive at: its domain is a name, and not that of one machine."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"allowlist": [], **kwargs})

    def validate_domain_part(self, domain_part: str) -> bool:
        """Return whether the domain is a name with a dot, also one of another script."""
        return bool(self.domain_regex.fullmatch(domain_part))


def composed(value: Any) -> Any:
    """Return a text with composed letters (NFC), and anything else as it is."""
    return unicodedata.normalize("NFC", value) if isinstance(value, str) else value


def email_key(email: str) -> str:
    """Return an e-mail address as it is compared: without case, the domain in its own script."""
    text = unicodedata.normalize("NFKC", email.strip()).lower()
    name, at, domain = text.rpartition("@")
    return f"{name}{at}{_in_its_script(domain)}"


def in_ascii(email: str) -> str:
    """Return a compared address with its domain as the network has it: xn--…"""
    name, at, domain = email.rpartition("@")
    try:
        return f"{name}{at}{idna.encode(domain, uts46=True).decode()}"
    except idna.IDNAError:
        return email


def passwords(typed: str) -> list[str]:
    """Return the forms that a typed password may be kept in, the one of new ones first."""
    return list(dict.fromkeys([new_password(typed), typed]))


def new_password(typed: str) -> str:
    """Return a password as new ones are kept: the same from every keyboard (NFKC)."""
    return unicodedata.normalize("NFKC", typed)


def _in_its_script(domain: str) -> str:
    if len(domain) > LONGEST_DOMAIN:
        return domain
    try:
        return idna.decode(domain, uts46=True)
    except idna.IDNAError:
        return domain
