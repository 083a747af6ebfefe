"""From which address a request comes."""

import pytest
from django.test import RequestFactory

from sasweb.addresses import client


@pytest.mark.parametrize(
    ("proxies", "told", "address"),
    [
        (0, "203.0.113.7", "10.0.0.1"),  # whoever says so
        (1, "203.0.113.7", "203.0.113.7"),
        (1, "192.0.2.1, 203.0.113.7", "203.0.113.7"),  # the first one is the client's own word
        (2, "192.0.2.1, 203.0.113.7, 10.0.0.2", "203.0.113.7"),
        (2, "203.0.113.7", "10.0.0.1"),  # past one of them
        (1, "2001:DB8::1", "2001:db8::1"),
        (1, "unknown", "10.0.0.1"),
        (1, "", "10.0.0.1"),
    ],
)
def test_only_what_our_own_proxies_say_counts(settings, proxies, told, address):
    settings.PROXIES = proxies
    request = RequestFactory().get("/", headers={"X-Forwarded-For": told}, REMOTE_ADDR="10.0.0.1")
    assert client(request) == address
