"""E-mail is configured by one URL."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from sasweb.mail import configuration

FOLDER = Path("/data/mail")


@pytest.mark.parametrize(
    ("url", "known"),
    [
        ("", {"EMAIL_BACKEND": "django.core.mail.backends.filebased.EmailBackend",
              "EMAIL_FILE_PATH": "/data/mail"}),
        ("file:///else/where", {"EMAIL_FILE_PATH": "/else/where"}),
        ("console:", {"EMAIL_BACKEND": "django.core.mail.backends.console.EmailBackend"}),
        ("smtp://mail.example", {"EMAIL_HOST": "mail.example", "EMAIL_PORT": 25,
                                 "EMAIL_USE_TLS": False, "EMAIL_USE_SSL": False}),
        ("smtp+tls://me%40x:p%2Fw@mail.example", {"EMAIL_PORT": 587, "EMAIL_USE_TLS": True,
                                                  "EMAIL_HOST_USER": "me@x", "EMAIL_HOST_PASSWORD": "p/w"}),
        ("smtps://mail.example:4650", {"EMAIL_PORT": 4650, "EMAIL_USE_SSL": True}),
    ],
)  # fmt: skip
def test_mail_settings_of_a_url(url, known):
    assert configuration(url, FOLDER).items() >= known.items()


@pytest.mark.parametrize("url", ["mail.example", "smtp://", "smtp://mail.example:many", "file:"])
def test_malformed_mail_url_is_improperly_configured(url):
    with pytest.raises(ImproperlyConfigured, match="EMAIL_URL"):
        configuration(url, FOLDER)
