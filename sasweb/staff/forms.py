"""The forms of the staff's login, apart from name and password."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.views.decorators.debug import sensitive_variables

LONGEST_PASSWORD = 4096  # characters; hashing more would waste time


class Code(forms.Form):
    """A code of the app, or a recovery code."""

    code = forms.CharField(
        label="Code",
        max_length=32,
        widget=forms.TextInput(
            attrs={"autocomplete": "one-time-code", "autocapitalize": "off", "spellcheck": "false"}
        ),
    )


class Password(forms.Form):
    """The password of who is logged in, once more: the browser may have been left alone."""

    password = forms.CharField(
        label="Your password",
        strip=False,
        max_length=LONGEST_PASSWORD,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    @sensitive_variables()
    def clean_password(self) -> str:
        """Check it."""
        password: str = self.cleaned_data["password"]
        if not self.user.check_password(password):
            raise ValidationError("This is not your password.", code="wrong")
        return password


class SetUp(Code, Password):
    """The first code of a new device, with the password."""

    field_order = ["code", "password"]
