"""The form of the staff's login, with our own sentences."""

from typing import Any, cast

from django.contrib.auth.forms import AuthenticationForm
from django.core.validators import MaxLengthValidator
from django.forms import CharField

from orders.shop.forms import CustomerForm


class LoginForm(CustomerForm, AuthenticationForm):
    """Name and password. A wrong password and an unknown name get the same answer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        name = cast("CharField", self.fields["username"])
        # Django has only the browser count; what counts failed logins stores the name
        name.validators.append(MaxLengthValidator(cast("int", name.max_length)))

    error_messages = {
        "invalid_login": "The name or the password is wrong.",
        "inactive": "This account is switched off.",
    }
