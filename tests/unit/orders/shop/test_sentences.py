"""The shop's forms speak with one voice: none shows a sentence of Django's."""

import re

import pytest
from django.contrib.auth.models import User
from django.utils import translation

from orders.shop.account_forms import ChangePasswordForm, SignInForm, SignUpForm
from orders.shop.find_form import FindForm
from orders.shop.forms import AddressForm, CheckoutForm, OtherCardForm
from sasweb.login_form import LoginForm

STOCK = re.compile(r"Ensure this|Null characters|This field|Enter a|This password is|valid choice")
FORMS = {
    "address": AddressForm,
    "checkout": CheckoutForm,
    "find": FindForm,
    "other card": OtherCardForm,
    "sign up": SignUpForm,
    "sign in": lambda data: SignInForm(None, data),
    "password": lambda data: ChangePasswordForm(User(username="ada", password="!"), data),
    "login": lambda data: LoginForm(None, data),
}


@pytest.mark.parametrize("value", ["", "x" * 5000, "a\0b", "1", "password", "\u202e"])
@pytest.mark.parametrize("name", FORMS)
def test_form_shows_no_sentence_of_djangos(name, value, monkeypatch):
    monkeypatch.setattr("orders.shop.account_forms.authenticate", lambda *_, **__: None)
    monkeypatch.setattr("django.contrib.auth.forms.authenticate", lambda *_, **__: None)
    with translation.override("en"):
        fields = FORMS[name]({}).fields
        errors = FORMS[name](dict.fromkeys(fields, value)).errors
        shown = [str(words) for listed in errors.values() for words in listed]
    assert shown
    assert [words for words in shown if STOCK.search(words)] == []
    assert all(len(set(listed)) == len(listed) for listed in errors.values())
