"""Check, sign and POST webhooks.

The headers follow the Standard Webhooks specification, so any of its libraries verifies them. An admin
enters the URL, yet it must not open a way into the private network. So each address of the host name is
checked, and the connection goes to a checked address only.
"""

import asyncio
import base64
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Protocol
from urllib.parse import SplitResult, urlsplit

import aiohttp
from aiohttp import AddrInfoType
from aiohttp.abc import AbstractResolver, ResolveResult
from django.conf import settings

from ..payloads import signatures

TIMEOUT = 5.0  # seconds for a whole POST, with the look-up of the name
# of IANA's registries of special addresses, what an older Python takes for global
NOT_PUBLIC = tuple(map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20")))
NAT64 = IPv6Network("64:ff9b::/96")  # stands for IPv4 addresses, private ones too


class ForbiddenAddress(ValueError):
    """An address that webhooks must not go to; the text gives the reason."""


class Signed(Protocol):
    """A receiver of signed webhooks."""

    secret: str
    old_secret: str


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """One message to one receiver. `id` stays the same when it is sent again."""

    id: str
    url: str
    secrets: Sequence[str]
    body: bytes


def parse_address(url: str) -> SplitResult:
    """Return the parts of a URL that webhooks may go to; raise `ForbiddenAddress`. Asks no name server."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ForbiddenAddress(f"It is not a URL: {error}.") from None
    host = (parts.hostname or "").rstrip(".")
    if not host.isascii():
        # the resolver may read it as other characters: wide digits as 127.0.0.1, for example
        raise ForbiddenAddress("Its host is not written in ASCII: write it as xn--….")
    if parts.scheme != "https" and not (parts.scheme == "http" and _private_allowed()):
        raise ForbiddenAddress("Webhooks go to https:// addresses only.")
    if not host:
        raise ForbiddenAddress("It names no host.")
    if parts.username is not None or parts.password is not None or parts.fragment or port == 0:
        raise ForbiddenAddress("A user, a password, a fragment or port 0 has no place in it.")
    hosts = [name.lower() for name in settings.WEBHOOK_HOSTS]
    if hosts and host not in hosts:
        raise ForbiddenAddress(
            f"{host} is not among the hosts that webhooks may go to (WEBHOOK_HOSTS)."
        )
    try:
        literal = ip_address(host)
    except ValueError:
        return parts  # a name: its addresses are checked when it is used
    _check(literal)
    return parts


def signed(webhook: Webhook, timestamp: int) -> str:
    """Return the signatures by each of the secrets: a receiver needs to know one of them."""
    of = webhook.id, str(timestamp), webhook.body
    return " ".join(signatures.standard(secret, *of) for secret in webhook.secrets)


async def post(webhooks: Sequence[Webhook], timestamp: int) -> list[str]:
    """POST all at once; return the problem of each, or "" for one that its receiver took.

    Answers are not read beyond their status, and redirects are not followed.
    """
    connector = aiohttp.TCPConnector(
        resolver=_CheckedResolver(), socket_factory=_checked_socket, limit=len(webhooks) or 1
    )
    async with aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=TIMEOUT),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
    ) as session:
        return await asyncio.gather(*(_post(session, webhook, timestamp) for webhook in webhooks))


async def _post(session: aiohttp.ClientSession, webhook: Webhook, timestamp: int) -> str:
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "sas",
        "webhook-id": webhook.id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signed(webhook, timestamp),
    }
    if not webhook.secrets:
        return "There is no secret to sign with."
    try:
        parse_address(webhook.url)
        async with session.post(
            webhook.url, data=webhook.body, headers=headers, allow_redirects=False
        ) as answer:
            return "" if 200 <= answer.status < 300 else f"It answered {answer.status}."
    except ForbiddenAddress as error:
        return str(error)
    except TimeoutError:
        return f"No answer within {TIMEOUT:g} s."
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"[:300]


class _CheckedResolver(AbstractResolver):
    """Resolves a name, and fails unless all its addresses are public."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        addresses = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, family=family
        )
        results: list[ResolveResult] = []
        for kind, _, protocol, _, address in addresses:
            _check(ip_address(str(address[0]).partition("%")[0]))
            results.append(
                ResolveResult(
                    hostname=host,
                    host=str(address[0]),
                    port=port,
                    family=kind,
                    proto=protocol,
                    flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
                )
            )
        return results

    async def close(self) -> None:
        pass


def _checked_socket(info: AddrInfoType) -> socket.socket:
    """Make a socket for an address, which must be public."""
    kind, sort, protocol, _, address = info
    _check(ip_address(str(address[0]).partition("%")[0]))
    made = socket.socket(kind, sort, protocol)
    made.setblocking(False)
    return made


def _check(address: IPv4Address | IPv6Address) -> None:
    """Raise `ForbiddenAddress` unless the address is one of the public Internet."""
    if not (_private_allowed() or _public(address)):
        raise ForbiddenAddress(f"{address} is not an address of the public Internet.")


def _public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return _public(inner)
        if address.teredo or address in NAT64 or address.is_site_local:
            return False
    if any(address in network for network in NOT_PUBLIC):
        return False
    # documentation, shared and reserved ranges are not global either
    return address.is_global and not address.is_multicast and not address.is_reserved


def _private_allowed() -> bool:
    return bool(settings.WEBHOOKS_ALLOW_PRIVATE)


def signing_secrets(receiver: Signed) -> Sequence[str]:
    """Return the secrets that sign messages to a receiver: two while it changes over."""
    return [secret for secret in (receiver.secret, receiver.old_secret) if secret]


def new_secret() -> str:
    """Return a secret to sign with, as the specification writes them."""
    return signatures.PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()
