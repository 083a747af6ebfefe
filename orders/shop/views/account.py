"""Pages of a customer's account."""

from dataclasses import asdict
from http import HTTPStatus
from typing import Any
from uuid import UUID

from allauth.account.internal.flows.login import perform_password_login
from allauth.account.models import Login
from allauth.account.signals import password_changed
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AnonymousUser, User
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from orders import devices, visitors
from orders.rate_limit import Limit
from orders.shop import confirmations
from orders.shop.account_forms import ChangePasswordForm, SignInForm, SignUpForm
from orders.shop.accounts import (
    account_name,
    find_account,
    open_account,
    orders_of,
    pending_orders,
    save_address,
    usual_address,
)
from orders.shop.forms import AddressForm
from orders.shop.typed import form_page, typed

from .redirect import next_path, see_other

# axes limits wrong passwords per account; these limits are per IP address, for all accounts.
SIGN_INS = Limit("sign-in", most=60, seconds=600)
SIGN_UPS = Limit("sign-up", most=20, seconds=3600)
PASSWORDS = Limit("password", most=10, seconds=600)
SIGNED_UP = (
    "signed_up"  # in a session: the name of the account that was asked for, and where to go then
)

signed_in = login_required(login_url="shop:sign_in")


@never_cache
@sensitive_post_parameters()
@form_page
def sign_in(request: HttpRequest) -> HttpResponse:
    """Sign in."""
    if request.method != "POST":
        return _form(request, "sign_in", SignInForm(request, initial=typed(request)))
    if not SIGN_INS.allows_address(request):
        return _form(request, "sign_in", SignInForm(request, initial=_typed(request)), SIGN_INS)
    if not devices.may_try(request, request.POST.get("email", "")):
        form = SignInForm(request, initial=_typed(request))
        return _form(request, "sign_in", form, devices.TRIES)
    form = SignInForm(request, request.POST)
    if not form.is_valid() or form.user is None:
        return _form(request, "sign_in", form)
    change_of_person(request, form.user)
    return _go_on(request, form.user, next_path(request))


@never_cache
@sensitive_post_parameters()
@form_page
def sign_up(request: HttpRequest) -> HttpResponse:
    """Create an account, which its owner confirms by the link of a letter.

    The answer is the same for an address that has an account. Its owner gets another letter.
    """
    if request.method != "POST":
        return _form(request, "sign_up", SignUpForm(initial=typed(request)))
    form = SignUpForm(request.POST)
    if not form.is_valid():
        return _form(request, "sign_up", form)
    if not SIGN_UPS.allows_address(request):
        return _form(request, "sign_up", form, SIGN_UPS)
    email = form.cleaned_data["email"]
    address = open_account(email, form.cleaned_data["password"])
    if address:
        confirmations.send(address)
    elif known := find_account(email):
        confirmations.send_known(known)
    request.session[SIGNED_UP] = [account_name(email), next_path(request)]
    return see_other(reverse("shop:check_mail"))


@never_cache
@require_safe
def check_mail(request: HttpRequest) -> HttpResponse:
    """Say that a letter is on its way."""
    return render(request, "account/check_mail.html", {"days": confirmations.LIFE // 86_400})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def confirm(request: HttpRequest, key: str) -> HttpResponse:
    """Confirm an e-mail address by the link of a letter; sign in the browser in which it was typed."""
    address = confirmations.address_of(key)
    if address is None:
        return render(request, "account/confirm.html", {"ended": True})
    if request.method != "POST":
        return render(request, "account/confirm.html", {"email": address.email})
    joined = confirmations.confirm(address)
    user, (name, onward) = address.user, request.session.pop(SIGNED_UP, ("", ""))
    messages.success(request, _("Your e-mail address is confirmed."))
    if joined:
        messages.success(request, _("Orders that you placed without the account are in it now."))
    if name != user.get_username():
        return see_other(reverse("shop:sign_in"))
    change_of_person(request, user)
    return _go_on(request, user, onward)


@never_cache
@signed_in
@require_safe
def account(request: HttpRequest) -> HttpResponse:
    """Show a customer's orders, newest first, and their usual address."""
    customer = _customer(request)
    page = orders_of(customer, _uuid(request.GET.get("before", "")))
    context = {
        "page": page,
        "waiting": pending_orders(customer) if page.first else [],
        "address": usual_address(customer),
    }
    return render(request, "account/account.html", context)


@never_cache
@signed_in
@form_page
def address(request: HttpRequest) -> HttpResponse:
    """Change a customer's usual address; orders that were placed keep theirs."""
    customer = _customer(request)
    if request.method != "POST":
        known = usual_address(customer)
        return _form(
            request,
            "address",
            AddressForm(initial={**(asdict(known) if known else {}), **typed(request)}),
        )
    form = AddressForm(request.POST)
    if not form.is_valid():
        return _form(request, "address", form)
    save_address(customer, form.address())
    messages.success(request, _("Your address is kept for your next order."))
    return see_other(reverse("shop:account"))


@never_cache
@sensitive_post_parameters()
@signed_in
@form_page
def password(request: HttpRequest) -> HttpResponse:
    """Change a customer's password and end their other sessions."""
    customer = _customer(request)
    if request.method != "POST":
        return _form(request, "password", ChangePasswordForm(customer))
    if not PASSWORDS.allows(str(customer.pk)):
        return _form(request, "password", ChangePasswordForm(customer), PASSWORDS)
    form = ChangePasswordForm(customer, request.POST)
    if not form.is_valid():
        return _form(request, "password", form)
    customer.set_password(form.cleaned_data["password"])
    customer.save(update_fields=["password"])
    update_session_auth_hash(request, customer)
    password_changed.send(sender=User, request=request, user=customer)
    messages.success(request, _("Your password is changed. You are signed out everywhere else."))
    return see_other(reverse("shop:account"))


def _go_on(request: HttpRequest, user: User, onward: str) -> HttpResponse:
    """Go on after the password: to the second factor, or into the account; remember the browser."""
    name = user.get_username()
    login = Login(user=user, redirect_url=onward or reverse("shop:account"))
    response = see_other(perform_password_login(request, {"username": name}, login)["Location"])
    devices.remember(response, name)
    return response


def change_of_person(request: HttpRequest, user: User) -> None:
    """End the session of before; take the cart away where one account follows another."""
    if not request.user.is_authenticated:
        return
    if request.user.pk != user.pk:
        visitors.forget(request)
    request.session.flush()
    request.user = AnonymousUser()  # the second factor is asked of those who are not in


def _form(request: HttpRequest, name: str, form: Form, over: Limit | None = None) -> HttpResponse:
    """Show a form: 422 with errors, 429 over the rate limit `over`."""
    context: dict[str, Any] = {"form": form, "next": next_path(request)}
    status, headers = HTTPStatus.OK, {}
    if over:
        context["problem"] = over.refusal_text
        status, headers = HTTPStatus.TOO_MANY_REQUESTS, {"Retry-After": str(over.seconds)}
    elif form.errors:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    response = render(request, f"account/{name}.html", context, status=status)
    for header, value in headers.items():
        response[header] = value
    return response


def _typed(request: HttpRequest) -> dict[str, str]:
    """Return the values to show again in a form that was not validated."""
    return {"email": request.POST.get("email", "")}


def _customer(request: HttpRequest) -> User:
    """Return the signed-in customer; the caller requires a sign-in."""
    if not isinstance(request.user, User):
        raise TypeError("this view needs a signed-in customer")
    return request.user


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
