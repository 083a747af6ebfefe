"""What allauth asks this project: where a login leads, whose address it is, what may be removed."""

import time
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.authentication import get_authentication_records
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from orders.shop.views.redirect import see_other
from sasweb import addresses
from sasweb.staff import sessions

from . import second_factor

BACKEND = "django.contrib.auth.backends.ModelBackend"
SHOWN = {"mfa/messages/totp_deactivated.txt", "mfa/messages/webauthn_removed.txt"}
UNKNOWN = "::"  # the address of a client that none is known of: a connection by a socket


def is_of_staff(request: HttpRequest) -> bool:
    """Return whether a page is one of the staff's login."""
    return settings.FOR_STAFF and request.path_info.startswith("/login/")


class AccountAdapter(DefaultAccountAdapter):
    """Accounts of customers and staff."""

    def get_login_stages(self) -> list[str]:
        """Return what a login passes."""
        return ["sasweb.accounts.stages.VerifiedEmail", "allauth.mfa.stages.AuthenticateStage"]

    def get_login_redirect_url(self, request: HttpRequest) -> str:
        """Return where a login leads by which no page was asked for."""
        return settings.LOGIN_REDIRECT_URL if is_of_staff(request) else reverse("shop:account")

    def is_safe_url(self, url: str) -> bool:
        """Return whether a login may lead there: within this site."""
        return (url or "").startswith("/") and url_has_allowed_host_and_scheme(url, None)

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the address by which tries are counted, too."""
        return addresses.client(request) or UNKNOWN

    def login(self, request: HttpRequest, user: User) -> None:
        """Begin the session."""
        user.backend = BACKEND  # as `authenticate` sets it
        super().login(request, user)

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:  # noqa: ARG002
        """Answer a passkey of an account that is switched off."""
        messages.error(request, _("This account is switched off."))
        return see_other(reverse("account_login"))

    def add_message(
        self,
        request: HttpRequest,
        level: int,
        message_template: str | None = None,
        message_context: dict[str, Any] | None = None,
        extra_tags: str = "",
        message: str | None = None,
    ) -> None:
        """Show a message of allauth where the page that follows does not show what was done."""
        if message or message_template in SHOWN:
            super().add_message(
                request, level, message_template, message_context, extra_tags, message
            )

    def is_reauthentication_required(self, *, app: str) -> bool:  # noqa: ARG002
        """Return whether the password or factor was shown too long ago for a page that changes them."""
        if sessions.lacks_factor(self.request, self.request.user):
            return True
        records = get_authentication_records(self.request, self.request.user)
        last = max((record["at"] for record in records), default=0)
        return bool(time.time() - last > settings.ACCOUNT_REAUTHENTICATION_TIMEOUT)

    def get_reauthentication_methods(self, user: User | AnonymousUser) -> list[dict[str, Any]]:
        """Return how to show that it is the same person: with a second factor, if the session lacks it.

        Such a session is from before it was set up: with the password it would else remove the factor.
        """
        ways: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        lacks = user.is_authenticated and sessions.lacks_factor(self.request, user)
        return [way for way in ways if not (lacks and way["id"] == "reauthenticate")]


class FactorAdapter(DefaultMFAAdapter):
    """Second factors of customers and staff."""

    def _get_site_name(self) -> str:
        return str(settings.MFA_TOTP_ISSUER)

    def _get_user_identifier(self, user: User) -> str:
        return user.get_username()

    def build_totp_svg(self, url: str) -> str:
        """Return the QR code on white, which apps read in dark pages, too."""
        import qrcode  # for this page alone
        from qrcode.image.svg import SvgPathFillImage

        return str(qrcode.make(url, image_factory=SvgPathFillImage).to_string(encoding="unicode"))

    def can_delete_authenticator(self, authenticator: Authenticator) -> bool:
        """Return whether one may be removed: not the last one where it is required."""
        user = authenticator.user
        if not (settings.SECOND_FACTOR and sessions.works_here(user)):
            return True
        return second_factor.devices(user) != [authenticator.pk]
