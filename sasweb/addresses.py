"""The client's address of a request, behind trusted proxies."""

from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest


def client(request: HttpRequest) -> str:
    """Return the client's address; behind `PROXIES` proxies, as the outermost of them saw it.

    Each proxy appends the address of its client to `X-Forwarded-For`. Entries further to the left come
    from the client itself, and are not trusted.
    """
    connected = str(request.META.get("REMOTE_ADDR", ""))
    addresses = request.headers.get("X-Forwarded-For", "").split(",")
    if not 0 < settings.PROXIES <= len(addresses):
        return connected
    try:
        return str(ip_address(addresses[-settings.PROXIES].strip()))
    except ValueError:
        return connected
