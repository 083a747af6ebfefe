"""The form of the staff's login, with our own sentences."""

from django.contrib.auth.forms import AuthenticationForm

from orders.shop.forms import CustomerForm


class LoginForm(CustomerForm, AuthenticationForm):
    """Name and password. A wrong password and an unknown name get the same answer."""

    error_messages = {
        "invalid_login": "The name or the password is wrong.",
        "inactive": "This account is switched off.",
    }
