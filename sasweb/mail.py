"""How e-mail goes out: one URL, as with the database."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

BACKENDS = "django.core.mail.backends"
TIMEOUT = 5  # seconds for each answer of the mail server
PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}


def configuration(url: str, folder: Path) -> dict[str, object]:
    """Return Django's mail settings for a URL; without one, e-mails become files in `folder`.

    `smtp://host`, `smtp+tls://user:password@host:587` (STARTTLS), `smtps://user:password@host`,
    `console:` (into the log) or `file:///a/folder`.
    """
    try:
        parts = urlsplit(url or f"file://{folder}")
        port = parts.port
    except ValueError as error:
        raise ImproperlyConfigured(f"EMAIL_URL is not a URL: {error}.") from None
    if parts.scheme == "console":
        return {"EMAIL_BACKEND": f"{BACKENDS}.console.EmailBackend"}
    if parts.scheme == "file" and parts.path:
        return {
            "EMAIL_BACKEND": f"{BACKENDS}.filebased.EmailBackend",
            "EMAIL_FILE_PATH": unquote(parts.path),
        }
    if parts.scheme in PORTS and parts.hostname:
        return {
            "EMAIL_BACKEND": f"{BACKENDS}.smtp.EmailBackend",
            "EMAIL_HOST": parts.hostname,
            "EMAIL_PORT": port or PORTS[parts.scheme],
            "EMAIL_HOST_USER": unquote(parts.username or ""),
            "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
            "EMAIL_USE_TLS": parts.scheme == "smtp+tls",
            "EMAIL_USE_SSL": parts.scheme == "smtps",
            "EMAIL_TIMEOUT": TIMEOUT,
        }
    raise ImproperlyConfigured(
        "EMAIL_URL is not understood; it is smtp://host, smtp+tls://user:password@host:587, "
        "smtps://user:password@host, console: or file:///a/folder."
    )
