"""A user's authenticator app, and logins with it."""

import base64
import secrets
import time

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value
from django.test import Client

from sasweb.accounts import second_factor
from tests.support.page import page

PASSWORD = "correct horse"
SET_UP = "/login/second-factor/app/"


class App:
    """An authenticator app; each code that it shows is a new one."""

    def __init__(self, secret: str):
        self.secret, self.used = secret, -1

    @classmethod
    def typed(cls, text: str) -> "App":
        """Return an app into which a secret was typed."""
        return cls(text.replace(" ", ""))

    def code(self, ahead: int = 0) -> str:
        """Return the code of now, or of the step after it, so that no test waits for the next."""
        step = max(int(time.time()) // 30 + ahead, self.used + 1)
        self.used = step
        return format_hotp_value(hotp_value(self.secret, step))


def with_app(user) -> App:
    """Return the app of a user who has set it up a while ago."""
    secret = base64.b32encode(secrets.token_bytes(20)).decode()
    TOTP.activate(user, secret)
    return App(secret)


def with_recovery_codes(user) -> list[str]:
    """Return the recovery codes of a user who was shown them a while ago."""
    Authenticator.objects.filter(user=user, type=second_factor.RECOVERY).delete()
    instance = RecoveryCodes.activate(user).instance
    instance.wrap().mark_as_viewed()
    return second_factor.keep_digests(instance)


def app_of(response) -> App:
    """Return an app that has scanned the page of the set-up."""
    return App.typed(page(response).only("[data-secret]").text)


def log_in(user, *, client=None, to="/ops/", follow=False, **headers):
    """Type the password at the staff's login; return the browser and the answer."""
    client = client or Client()
    sent = {"username": user.get_username(), "password": PASSWORD, "next": to}
    return client, client.post("/login/", sent, follow=follow, headers=headers)


def logged_in(user, app) -> Client:
    """Return the browser of a user who has shown both factors."""
    client, _ = log_in(user)
    assert client.post("/login/code/", {"code": app.code()}).status_code == 303
    return client
