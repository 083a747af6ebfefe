"""The client's address of a request, behind trusted proxies."""

from ipaddress import IPv6Address, ip_address

from django.conf import settings
from django.http import HttpRequest


def client(request: HttpRequest) -> str:
    """Return the client's address, for counting tries; behind `PROXIES` proxies, as the outermost saw it.

    Of IPv6 it is the network of 64 bits: a provider gives each customer one at the least, and they could
    use another address in it for each try.

    Each proxy appends the address of its client to `X-Forwarded-For`. Entries further to the left come
    from the client itself, and are not trusted.
    """
    connected = _counted(str(request.META.get("REMOTE_ADDR", "")))
    addresses = request.headers.get("X-Forwarded-For", "").split(",")
    if not 0 < settings.PROXIES <= len(addresses):
        return connected
    return _counted(addresses[-settings.PROXIES].strip()) or connected


def _counted(address: str) -> str:
    """Return the key that identifies a client; empty if the text is not an IP address."""
    try:
        ip = ip_address(address)
    except ValueError:
        return ""
    if isinstance(ip, IPv6Address):
        within = ip.ipv4_mapped or ip.sixtofour  # one client's IPv4 address
        return str(within or IPv6Address(int(ip) >> 64 << 64))
    return str(ip)
