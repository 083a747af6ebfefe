"""The address of a request's client."""

import pytest
from django.test import RequestFactory

from sasweb.addresses import client


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        (0, "203.0.113.7", "10.0.0.1"),  # no proxy: the header is ignored
        (1, "203.0.113.7", "203.0.113.7"),
        (1, "192.0.2.1, 203.0.113.7", "203.0.113.7"),  # the client may have sent the first
        (2, "192.0.2.1, 203.0.113.7, 10.0.0.2", "203.0.113.7"),
        (2, "203.0.113.7", "10.0.0.1"),  # the request bypassed a proxy
        (1, "2001:DB8:1:2:3:4:5:6", "2001:db8:1:2::"),
        (1, "2001:db8:1:2::7", "2001:db8:1:2::"),  # the same client
        (1, "2001:db8:1:3::7", "2001:db8:1:3::"),
        (1, "::ffff:203.0.113.7", "203.0.113.7"),
        (1, "2002:cb00:7107:12::1", "203.0.113.7"),
        (1, "fe80::1:2:3:4%eth0", "fe80::"),
        (1, "unknown", "10.0.0.1"),
        (1, "", "10.0.0.1"),
    ],
)
def test_client_address_behind_own_proxies(settings, proxies, forwarded, address):
    settings.PROXIES = proxies
    headers = {"X-Forwarded-For": forwarded}
    request = RequestFactory().get("/", headers=headers, REMOTE_ADDR="10.0.0.1")
    assert client(request) == address


@pytest.mark.parametrize(
    ("connected", "address"), [("2001:db8::7", "2001:db8::"), ("10.0.0.1", "10.0.0.1"), ("", "")]
)
def test_client_address_without_a_proxy(settings, connected, address):
    settings.PROXIES = 0
    assert client(RequestFactory().get("/", REMOTE_ADDR=connected)) == address
