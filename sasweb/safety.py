"""What production must not have: weak keys, and debug pages. Each is refused at the start with a sentence."""

from django.core.exceptions import ImproperlyConfigured

from . import env

SHORTEST_KEY = 32  # characters: keys can be tried without end against one signed message or cookie
FEWEST_DIFFERENT = 8  # of them
MAKE_ONE = "Make one: python -c 'import secrets; print(secrets.token_urlsafe(48))'"


def check(*, debug: bool, secret_key: str | None, https: bool, environment: str) -> None:
    """Raise `ImproperlyConfigured` for what an installation for customers must not have.

    `secret_key` is None for a process that signs nothing.
    """
    if not https and environment != "production":
        return
    if debug:
        raise ImproperlyConfigured(
            "DEBUG=1 is refused with HTTPS=1 or ENVIRONMENT=production: its pages show code, data and "
            "settings to everybody. Unset DEBUG."
        )
    if secret_key is not None and is_weak(secret_key):
        raise ImproperlyConfigured(
            f"SECRET_KEY is too weak for HTTPS=1 or ENVIRONMENT=production: it needs {SHORTEST_KEY} "
            f"random characters. {MAKE_ONE}"
        )


def is_weak(key: str) -> bool:
    """Return whether a key can be guessed."""
    return (
        len(key) < SHORTEST_KEY
        or len(set(key)) < FEWEST_DIFFERENT
        or key.startswith("django-insecure-")
    )


def message_keys(made: str) -> list[str]:
    """Return the keys of messages: the first one signs; `made` is the demo's own, if there is one."""
    key = env.text("MESSAGE_KEY", made)
    keys = [*([key] if key else ()), *env.words("MESSAGE_KEY_FALLBACKS")]
    if keys and not key:
        raise ImproperlyConfigured("MESSAGE_KEY_FALLBACKS is set without MESSAGE_KEY.")
    if any(map(is_weak, keys)):
        raise ImproperlyConfigured(
            f"MESSAGE_KEY and its fallbacks need {SHORTEST_KEY} random characters each. {MAKE_ONE}"
        )
    return keys
