"""From which address a request comes: for whatever is counted by address."""

from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest


def client(request: HttpRequest) -> str:
    """Return the address of who asks; behind `PROXIES` proxies, as the outermost one of them saw it.

    Each proxy adds the address that it was asked from to the end of `X-Forwarded-For`. What is
    further to the left was sent by the client itself, and is not to be believed.
    """
    connected = str(request.META.get("REMOTE_ADDR", ""))
    told = request.headers.get("X-Forwarded-For", "").split(",")
    if not 0 < settings.PROXIES <= len(told):
        return connected
    try:
        return str(ip_address(told[-settings.PROXIES].strip()))
    except ValueError:
        return connected
