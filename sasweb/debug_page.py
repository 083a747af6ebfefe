"""Django's debug pages and reports of errors, without the secrets that a process knows."""

from functools import cache
from html import escape
from urllib.parse import quote, urlsplit

from django.conf import settings
from django.utils.safestring import SafeString, mark_safe
from django.views.debug import ExceptionReporter

VEIL = "**********"


class Reporter(ExceptionReporter):
    """Replaces secrets wherever they stand: Django hides settings by their name, and no local variable."""

    def get_traceback_html(self) -> SafeString:
        """Return the page."""
        return without_secrets(super().get_traceback_html())

    def get_traceback_text(self) -> SafeString:
        """Return the page as plain text."""
        return without_secrets(super().get_traceback_text())


def without_secrets(text: str) -> SafeString:
    """Return a text without this process's keys and the passwords of its services."""
    for secret in _secrets():
        text = text.replace(secret, VEIL)
    return mark_safe(text)  # noqa: S308 - as safe as what Django made


@cache
def _secrets() -> list[str]:
    """Return the secrets as they may be written, the longest first: one may be a part of another."""
    database = settings.DATABASES["default"]
    known = {
        settings.SECRET_KEY,
        *settings.SECRET_KEY_FALLBACKS,
        *settings.MESSAGE_KEYS,
        settings.PAYMENT_SECRET_KEY,
        *settings.PAYMENT_WEBHOOK_SECRETS,
        database.get("PASSWORD", ""),
        database.get("OPTIONS", {}).get("password", ""),
        getattr(settings, "EMAIL_HOST_PASSWORD", ""),
        *(urlsplit(url).password for url in (settings.DATABASE_URL, settings.REDIS_URL)),
    }
    words = {word for word in known if word}
    words |= {quote(word, safe="") for word in words}
    words |= {repr(word)[1:-1] for word in words}
    words |= {escape(word) for word in words}
    return sorted(words, key=len, reverse=True)
