"""Forms of customers' accounts."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth import authenticate, password_validation
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

from orders.normal import new_password, passwords

from .accounts import LONGEST_NAME, account_name, find_account
from .forms import ERRORS, NO_EMAIL, CustomerForm, Email, shown

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise as Words

WEAK = {  # by the codes of Django's validators
    "password_too_short": _("Please choose a password of at least %(min_length)d characters."),
    "password_too_similar": _("This password is too much like your e-mail address."),
    "password_too_common": _("Very many people use this password. Please choose another."),
    "password_entirely_numeric": _("Please choose a password that has letters, too."),
}
LONGEST_PASSWORD = 4096  # characters; hashing more would waste time


def _email(autocomplete: str, help_text: "Words" = "") -> Email:
    return Email(
        label=_("E-mail"),
        max_length=LONGEST_NAME,
        validators=[shown],
        help_text=help_text,
        widget=forms.EmailInput(attrs={"autocomplete": autocomplete}),
        error_messages={
            "required": _("Please enter your e-mail address."),
            "invalid": NO_EMAIL,
        },
    )


def _password(
    label: "Words", autocomplete: str, missing: "Words", help_text: "Words" = ""
) -> forms.CharField:
    return forms.CharField(
        label=label,
        strip=False,
        max_length=LONGEST_PASSWORD,
        help_text=help_text,
        widget=forms.PasswordInput(attrs={"autocomplete": autocomplete}),
        error_messages={"required": missing},
    )


class NewPasswordForm(CustomerForm):
    """A new password, typed twice."""

    password = _password(
        _("Password"),
        "new-password",
        _("Please choose a password."),
        _("At least 8 characters; the longer, the better."),
    )
    again = _password(
        _("Password again"), "new-password", _("Please enter the password a second time.")
    )

    def owner(self) -> User:
        """Return the password's owner; the password must not resemble their name."""
        return User()

    @sensitive_variables()
    def clean(self) -> dict[str, Any]:
        """Compare the two, and validate the password."""
        values = super().clean() or self.cleaned_data
        for name in {"password", "again"} & values.keys():
            values[name] = new_password(values[name])
        password, again = values.get("password"), values.get("again")
        if password:
            try:
                password_validation.validate_password(password, self.owner())
            except ValidationError as problem:
                for error in problem.error_list:
                    words = WEAK.get(str(error.code), error.message)
                    self.add_error("password", ValidationError(words, error.code, error.params))
        if password and again and password != again:
            different = _("This is not the same password as above.")
            self.add_error("again", ValidationError(different, code="different"))
        return values


class SignUpForm(NewPasswordForm):
    """A new account."""

    email = _email("username", _("You sign in with it, and confirmations go there."))
    field_order = ["email", "password", "again"]

    def clean_email(self) -> str:
        """Refuse an address that is too long for the name of an account."""
        email: str = self.cleaned_data["email"]
        if len(account_name(email)) > LONGEST_NAME:
            limit = {"limit_value": LONGEST_NAME}
            raise ValidationError(ERRORS["max_length"], code="max_length", params=limit)
        return email

    def owner(self) -> User:
        """Return the unsaved account."""
        email = self.cleaned_data.get("email", "")
        return User(username=account_name(email), email=email)


class ChangePasswordForm(NewPasswordForm):
    """A change of password, by the current one."""

    old = _password(
        _("Current password"), "current-password", _("Please enter your current password.")
    )
    field_order = ["old", "password", "again"]

    def __init__(self, customer: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.customer = customer
        self.fields["password"].label = _("New password")
        self.fields["again"].label = _("New password again")

    def owner(self) -> User:
        """Return the customer."""
        return self.customer

    @sensitive_variables()
    def clean_old(self) -> str:
        """Check the current password."""
        old: str = self.cleaned_data["old"]
        if not any(map(self.customer.check_password, passwords(old))):
            raise ValidationError(_("This is not your current password."), code="wrong")
        return old


class ForgottenForm(CustomerForm):
    """The e-mail address of an account whose password is forgotten."""

    email = _email("username")


class ResetPasswordForm(NewPasswordForm):
    """A new password, by the link of a letter."""

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def owner(self) -> User:
        """Return the account."""
        return self.user

    def save(self) -> User:
        """Set the password, which ends all sessions of the account."""
        self.user.set_password(self.cleaned_data["password"])
        self.user.save(update_fields=["password"])
        return self.user


class SignInForm(CustomerForm):
    """A sign-in. A wrong password and an unknown address get the same answer."""

    email = _email("username")
    password = _password(_("Password"), "current-password", _("Please enter your password."))

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request
        self.user: User | None = None

    @sensitive_variables()
    def clean(self) -> dict[str, Any]:
        """Authenticate. After too many wrong passwords the right one is refused too."""
        values = super().clean() or self.cleaned_data
        if {"email", "password"} <= values.keys():
            self.user = self._authenticated(values["email"], values["password"])
            if self.user is None:
                raise ValidationError(
                    _("The e-mail address or the password is wrong."), code="wrong"
                )
        return values

    @sensitive_variables()
    def _authenticated(self, email: str, typed: str) -> User | None:
        """Return the account, if the password is its own in one of the forms it may be kept in."""
        known = find_account(email)
        name = known.get_username() if known else account_name(email)
        tries = (
            authenticate(self.request, username=name, password=password)
            for password in passwords(typed)
        )
        return next((user for user in tries if isinstance(user, User)), None)
