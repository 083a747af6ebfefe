"""Customers who create accounts and follow the link of the letter."""

from allauth.account.models import EmailAddress
from django.test import Client
from django.urls import reverse

from orders.shop import accounts, confirmations

PASSWORD = "correct horse"


def link_to(email: str) -> str:
    """Return the address that the letter to an address leads to."""
    address = EmailAddress.objects.get(user=accounts.find_account(email))
    return reverse("shop:confirm", args=[confirmations.key_of(address)])


def confirmed(email: str, password: str = PASSWORD):
    """Return a new account whose owner has followed the link."""
    address = accounts.open_account(email, password)
    confirmations.confirm(address)
    return address.user


def customer(email="ada@example.org", password=PASSWORD, client=None) -> Client:
    """Return the browser of a customer who has just created an account, and confirmed the address."""
    client = client or Client()
    sent = {"email": email, "password": password, "again": password}
    assert client.post("/account/sign-up/", sent).status_code == 303
    assert client.post(link_to(email)).status_code == 303
    return client
