"""The forms of second factors, and of what is asked again before they change."""

from typing import Any, cast

from allauth.core import context
from allauth.mfa.base.forms import AuthenticateForm, BaseAuthenticateForm, ReauthenticateForm
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.webauthn.forms import AddWebAuthnForm
from django import forms
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

from orders.normal import passwords
from orders.shop.account_forms import LONGEST_PASSWORD
from orders.shop.forms import CustomerForm
from sasweb.staff.sessions import works_here

from . import second_factor

WRONG = _("This code is wrong, or was used already. Wait for the next one.")


def _code(label: Any) -> forms.CharField:
    attributes = {"autocomplete": "one-time-code", "autocapitalize": "off", "spellcheck": "false"}
    return forms.CharField(
        label=label,
        max_length=64,
        widget=forms.TextInput(attrs=attributes),
        error_messages={"required": _("Please enter the code.")},
    )


class _Code(CustomerForm, BaseAuthenticateForm):
    """A code of the app, or a recovery code."""

    code = _code(_("Code"))

    @sensitive_variables()
    def clean_code(self) -> str:
        """Check it; each code is good once, in whichever process."""
        code = self.cleaned_data["code"] = second_factor.compared(self.cleaned_data["code"])
        try:
            super().clean_code()
        except ValidationError:
            second_factor.failed(context.request, self.user)
            raise ValidationError(WRONG, code="wrong") from None
        staff = works_here(self.user)
        if self.authenticator.type != second_factor.RECOVERY and not second_factor.is_new(
            self.user, code, works_here=staff
        ):
            raise ValidationError(WRONG, code="used")
        return code


class CodeForm(_Code, AuthenticateForm):
    """The second factor at a login."""


class CodeAgainForm(_Code, ReauthenticateForm):
    """The second factor before something sensitive changes."""


class PasswordAgainForm(CustomerForm):
    """The password of who is signed in, once more: the browser may have been left alone."""

    password = forms.CharField(
        label=_("Your password"),
        strip=False,
        max_length=LONGEST_PASSWORD,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
        error_messages={"required": _("Please enter your password.")},
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    @sensitive_variables()
    def clean_password(self) -> str:
        """Check it; wrong ones count as those of a login do."""
        typed = cast("str", self.cleaned_data["password"])
        name = self.user.get_username()
        if not any(
            authenticate(context.request, username=name, password=form) == self.user
            for form in passwords(typed)
        ):
            raise ValidationError(_("This is not your password."), code="wrong")
        return typed


class AppForm(CustomerForm, ActivateTOTPForm):
    """The first code of a new app."""

    code = _code(_("Code that the app shows"))

    def clean_code(self) -> str:
        """Check it, with a sentence of our own."""
        try:
            return str(super().clean_code())
        except ValidationError as problem:
            if problem.code != "incorrect_code":
                raise
            raise ValidationError(WRONG, code="wrong") from None


class PasskeyForm(CustomerForm, AddWebAuthnForm):
    """A new passkey, which the browser has made."""

    name = forms.CharField(
        label=_("Name"),
        max_length=60,
        required=False,
        help_text=_("By which you recognize it later, such as “Phone”."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    # it is asked for its owner each time: so it stands for both factors
    passwordless = forms.BooleanField(initial=True, widget=forms.HiddenInput)
