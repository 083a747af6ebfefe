"""What a login has to pass between the password and the session, apart from the second factor."""

from typing import Any

from allauth.account.internal.constants import LoginStageKey
from allauth.account.stages import LoginStage
from django.http import HttpRequest
from django.urls import reverse

from orders.shop import confirmations
from orders.shop.views.redirect import see_other


class VerifiedEmail(LoginStage):
    """Keeps accounts out whose owner has not followed the link of the letter; sends another one."""

    key = LoginStageKey.VERIFY_EMAIL.value
    urlname = "account_email_verification_sent"

    def handle(self) -> tuple[Any, bool]:
        """Let in, or lead to the page that says where the letter is."""
        address = confirmations.awaited(self.login.user)
        if address is None:
            return None, True
        confirmations.send(address)
        return see_other(reverse(self.urlname)), False

    def is_resumable(self, request: HttpRequest) -> bool:  # noqa: ARG002
        """Return that the password is to be typed again: the link may be followed elsewhere."""
        return False
