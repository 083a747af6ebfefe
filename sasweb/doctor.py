"""The doctor's checks of this project: settings, partners and disk."""

import shutil
import socket
from collections.abc import Callable, Iterator
from email.utils import parseaddr
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.staticfiles.storage import ManifestFilesMixin
from django.core.checks import ERROR, CheckMessage, Error, Info, run_checks
from django.core.checks import Warning as Warn
from django.core.mail import get_connection
from django.core.mail.backends.smtp import EmailBackend
from django.http.request import validate_host
from django.utils.module_loading import import_string

from orchestration.assurance.doctor.subjects import Kind, Moot, Subject, Unanswered

from .stack import folders

PRODUCTION = "production"
CONNECT_S = 3.0
LOCAL = {"localhost", "127.0.0.1", "::1"}
PARTNERS = ("INVENTORY_URL", "PAYMENT_URL", "SHIPPING_URL", "COURIER_URL", "MAIL_URL")
PORTS = {"http": 80, "https": 443}
# warnings of Django's that are worse than that, with the remedies
SERIOUS = {
    "security.W009": "Set SECRET_KEY to what `python -c 'import secrets; print(secrets.token_urlsafe(64))'` "
    "prints, and keep it.",
    "security.W018": "Set DEBUG=0: its pages show settings and data with each error.",
}
# what HTTPS=1 settles, for which there is a check below
BY_HTTPS = {"security.W004", "security.W008", "security.W012", "security.W016"}
LOW, EMPTY = 2 << 30, 200 << 20  # bytes free
Settings = Any  # Django's, or what a test makes up


def _in_production(config: Settings) -> Kind:
    """Return the kind of message about what only a demo may do."""
    return Error if config.ENVIRONMENT == PRODUCTION else Info


of_settings: Subject[Settings] = Subject("settings", lambda: settings, remedy="")


@of_settings.check
def django(config: Settings) -> Iterator[CheckMessage]:
    """Yield the messages of Django's own checks, including those for deployment."""
    for message in run_checks(include_deployment_checks=True):
        if message.id in SERIOUS:
            message.level, message.hint = ERROR, SERIOUS[message.id]
        if message.id not in BY_HTTPS or config.HTTPS:
            yield message


@of_settings.check
def environment(config: Settings) -> Iterator[CheckMessage]:
    """Note that what a production must have is not asked for."""
    if config.ENVIRONMENT != PRODUCTION:
        yield Info(
            f"ENVIRONMENT is {config.ENVIRONMENT!r}: what only a production has to have is a note here.",
            hint=f"Where customers order, set ENVIRONMENT={PRODUCTION}.",
        )


@of_settings.check
def https(config: Settings) -> Iterator[CheckMessage]:
    """Check that cookies and passwords travel encrypted."""
    if not config.HTTPS:
        yield _in_production(config)(
            "HTTPS is off: passwords and session cookies travel in the clear.",
            hint="Put a proxy in front that ends TLS and sets X-Forwarded-Proto itself, and set HTTPS=1.",
        )


@of_settings.check
def staff_logins(config: Settings) -> Iterator[CheckMessage]:
    """Check that a password alone, or an unattended browser, does not open the dashboard."""
    kind = _in_production(config)
    if not config.SECOND_FACTOR:
        yield kind(
            "SECOND_FACTOR is off: a stolen password opens the dashboard and the admin.",
            hint="Set SECOND_FACTOR=1, unless a proxy in front asks staff for one.",
        )
    if not (config.STAFF_IDLE_MINUTES and config.STAFF_SESSION_HOURS):
        yield kind(
            "STAFF_IDLE_MINUTES or STAFF_SESSION_HOURS is 0: a browser left alone stays logged in.",
            hint="Unset them: with HTTPS=1 they are 30 and 12.",
        )


@of_settings.check
def site_url(config: Settings) -> Iterator[CheckMessage]:
    """Check that the shop's address is one that customers reach, and that it is answered."""
    site = urlsplit(config.SITE_URL)
    host = site.hostname or ""
    if host in LOCAL:
        yield _in_production(config)(
            f"SITE_URL is {config.SITE_URL}: links in letters and alerts lead to the reader's own machine.",
            hint="Set SITE_URL to the shop's address: https://shop.example.",
        )
    elif not validate_host(host, config.ALLOWED_HOSTS):
        yield Error(
            f"ALLOWED_HOSTS lacks {host}, the host of SITE_URL: each request to it is refused.",
            hint=f"Add it: ALLOWED_HOSTS={','.join([host, *config.ALLOWED_HOSTS])}",
        )
    if config.HTTPS and site.scheme != "https":
        yield Warn(
            "SITE_URL begins with http:, and HTTPS is on: links in letters go through a redirect.",
            hint=f"Set SITE_URL=https://{host}.",
        )


@of_settings.check
def allowed_hosts(config: Settings) -> Iterator[CheckMessage]:
    """Check that a request cannot spoof the shop's host name."""
    if "*" in config.ALLOWED_HOSTS:
        yield Warn(
            "ALLOWED_HOSTS has *: a request may name any host, also in links that others see.",
            hint="List the hosts that the shop is reached by.",
        )


@of_settings.check
def partners(config: Settings) -> Iterator[CheckMessage]:
    """Check that a production calls real partners, with a real key."""
    fake = [name for name in PARTNERS if getattr(config, name) == config.SANDBOX_URL]
    if fake:
        yield _in_production(config)(
            f"{', '.join(fake)}: the sandbox. No money, goods or letters move.",
            hint="Set each to the partner's address.",
        )
    if "PAYMENT_URL" not in fake and config.PAYMENT_SECRET_KEY.startswith("sk_test_"):
        yield _in_production(config)(
            "PAYMENT_SECRET_KEY is a key for tests.", hint="Set it to the key of the live account."
        )
    if "PAYMENT_URL" not in fake and not config.PAYMENT_WEBHOOK_SECRETS:
        yield Warn(
            "PAYMENT_WEBHOOK_SECRET is not set: the provider's webhooks are refused, and payments that "
            "customers confirm are noticed only as the provider is asked.",
            hint="Set it to the signing secret of the provider's endpoint.",
        )


@of_settings.check
def email(config: Settings) -> Iterator[CheckMessage]:
    """Check that e-mail leaves the machine."""
    if not config.EMAIL_BACKEND.endswith("smtp.EmailBackend"):
        yield _in_production(config)(
            "E-mail goes into files or the log: no one hears of alerts, or gets a link for a lost password.",
            hint="Set EMAIL_URL=smtp+tls://user:password@host:587.",
        )
    elif parseaddr(config.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2] in LOCAL:
        yield _in_production(config)(
            f"DEFAULT_FROM_EMAIL is {config.DEFAULT_FROM_EMAIL}: mail servers refuse letters of that sender.",
            hint="Set it to an address of a domain that lets your mail server send: shop@shop.example.",
        )


@of_settings.check
def message_keys(config: Settings) -> Iterator[CheckMessage]:
    """Check that write access to Redis is not enough to report a payment."""
    if not config.MESSAGE_KEYS:
        yield _in_production(config)(
            "MESSAGE_KEY is not set: any program that writes to Redis can report a payment.",
            hint="Introduce one as docs/run/secure.md describes: first with UNSIGNED_MESSAGES=1.",
        )
    elif config.UNSIGNED_MESSAGES:
        yield Warn(
            "UNSIGNED_MESSAGES is on: messages are accepted without a signature.",
            hint="Unset it once each process has its MESSAGE_KEY.",
        )


@of_settings.check
def webhooks(config: Settings) -> Iterator[CheckMessage]:
    """Check that webhooks cannot be pointed at internal services."""
    if config.WEBHOOKS_ALLOW_PRIVATE:
        yield _in_production(config)(
            "WEBHOOKS_ALLOW_PRIVATE is on: who sets up a channel reaches internal services through it.",
            hint="Unset it; WEBHOOK_HOSTS names the hosts that are wanted.",
        )


@of_settings.check
def static_files(config: Settings) -> Iterator[CheckMessage]:
    """Check that style sheets and scripts were collected."""
    uses_manifest = issubclass(
        import_string(config.STORAGES["staticfiles"]["BACKEND"]), ManifestFilesMixin
    )
    if uses_manifest and not (Path(config.STATIC_ROOT) / "staticfiles.json").exists():
        yield Error(
            f"{config.STATIC_ROOT} has no static files: pages fail.",
            hint="Run `manage.py collectstatic --noinput` where web processes run.",
        )


def connect(host: str | None, port: int, what: str) -> None:
    """Open a connection and close it; raise Unanswered if that fails."""
    try:
        socket.create_connection((host or "", port), CONNECT_S).close()
    except OSError as error:
        raise Unanswered(
            f"{what}: {host}:{port} is not reachable from this machine ({error})."
        ) from error


def _partner(name: str) -> None:
    url = urlsplit(getattr(settings, name))
    connect(url.hostname, url.port or PORTS.get(url.scheme, 443), name)


def _mail_server() -> None:
    backend = get_connection()
    if not isinstance(backend, EmailBackend):
        raise Moot
    connect(backend.host, backend.port, "EMAIL_URL")


_REACHED: dict[str, Callable[[], None]] = {
    **{name: partial(_partner, name) for name in PARTNERS},
    "EMAIL_URL": _mail_server,
}
for _name, _connect in _REACHED.items():
    Subject(
        _name,
        _connect,
        remedy="Correct the address, name service or firewall; nothing, if other machines alone have to "
        "reach it (those that run its agent, or the alerts' worker).",
        kind=Warn,
    )


def _free() -> int:
    folder = folders.data_dir()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


of_disk: Subject[int] = Subject("data_dir", _free, remedy="Correct DATA_DIR.")


@of_disk.check
def space(free: int) -> Iterator[CheckMessage]:
    """Check that there is disk left for logs, and the embedded servers."""
    if free < LOW:
        kind = Error if free < EMPTY else Warn
        yield kind(
            f"{free >> 20} MiB are free on the disk of {folders.data_dir()}.",
            hint="Free some, or move DATA_DIR: logs and the embedded servers write there.",
        )
