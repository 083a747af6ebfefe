"""A user's authenticator app, and logins with it."""

import base64
import time

from django.test import Client
from django_otp.oath import TOTP
from django_otp.plugins.otp_totp.models import TOTPDevice

from tests.support.page import page

PASSWORD = "correct horse"


class App:
    """An authenticator app; each code that it shows is a new one."""

    def __init__(self, secret: str):
        self.secret, self.used = secret, -1

    @classmethod
    def typed(cls, text: str) -> "App":
        """Return an app into which a secret was typed."""
        return cls(base64.b32decode(text.replace(" ", "")).hex())

    def code(self, ahead: int = 0) -> str:
        """Return the code of now, or of the step after it, so that no test waits for the next."""
        totp = TOTP(bytes.fromhex(self.secret))
        step = max(int(time.time()) // 30 + ahead, self.used + 1)
        totp.time, self.used = step * 30, step
        return f"{totp.token():06}"


def with_app(user) -> App:
    """Return the app of a user who has set it up a while ago."""
    device = TOTPDevice.objects.create(user=user, name="authenticator app")
    return App(device.key)


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
