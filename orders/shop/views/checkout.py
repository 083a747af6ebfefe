"""The checkout: one page, one form, one order."""

from dataclasses import asdict
from http import HTTPStatus
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from orchestration.api import format_money
from orders.currency import LARGEST_TOTAL, shop_currency
from orders.lifecycle import access, placement
from orders.lifecycle.message import Address, Mail, Message
from orders.rate_limit import Limit
from orders.shop.accounts import usual_address
from orders.shop.cart import Cart, PricedCart, cart_of, changing, price
from orders.shop.checkout_token import BadToken, Token, read_token
from orders.shop.forms import CheckoutForm
from orders.shop.typed import form_page, typed

from . import errors
from . import order as order_page
from .redirect import see_other

# per IP address, which a whole company may share
ORDERS = Limit("checkout", most=100, seconds=600)
TOO_MANY = _(
    "Very many orders came from your connection in a short time. Nothing was ordered; your cart and "
    "what you filled in are kept. Please wait %(minutes)d minutes, then send it again."
)
TOO_MUCH = _(
    "One order can come to at most %(most)s. Please take something out of your cart, and order it "
    "separately. Nothing was ordered."
)
CHANGED = _(
    "Your cart or a price has changed since you opened this page. Please check your order below "
    "and send it again. Nothing was ordered."
)
ORDERED_BEFORE = _(
    "You have placed this order already, with other details. It stands as it was placed; nothing "
    "was changed or ordered again."
)


@never_cache  # going back must not show a cart that was ordered
@sensitive_post_parameters()
@form_page
def checkout(request: HttpRequest) -> HttpResponse:
    """Show the form, or place the order and redirect to its page (303)."""
    if request.method == "POST":
        errors.may_be_repeated(request)
    # read the cart before the placement: a parallel request that empties the cart has placed it
    cart = cart_of(request)
    if request.method == "POST":
        return _place(request, cart)
    if cart.id is None:
        return redirect("shop:cart")
    return _show(
        request, cart, price(cart), CheckoutForm(initial={**_known(request), **typed(request)})
    )


def _place(request: HttpRequest, cart: Cart) -> HttpResponse:
    form = CheckoutForm(request.POST)
    try:
        token = read_token(request.POST.get("token", ""))
    except BadToken as bad:
        return _show(request, cart, price(cart), form, str(bad))
    content = token.agreed(form.details) if form.is_valid() else ""
    before = placement.placed(token.order)
    if before is not None:
        return _again(request, token.order, same=before == content)
    priced = price(cart)
    problem = _problem(cart, priced, token)
    if problem or not form.is_valid():
        return _show(request, cart, priced, form, problem)
    if not ORDERS.allows_address(request):
        return _too_many(request, cart, priced, form)
    message = _message(token, priced, form, request)
    try:
        # from here on the order may exist, so an error page must not deny it
        errors.may_be_ordered(request)
        _order(request, message, content)
    except placement.OtherContent:
        return _again(request, token.order, same=False)
    return _again(request, token.order, same=True)


def _problem(cart: Cart, priced: PricedCart, token: Token) -> str:
    """Return why this cart cannot be ordered as it was shown, or ""."""
    if cart.id is None or token != Token.offer(cart.id, priced):
        return str(CHANGED)
    if priced.total > LARGEST_TOTAL:
        return TOO_MUCH % {"most": format_money(LARGEST_TOTAL, shop_currency())}
    return ""


def _order(request: HttpRequest, message: Message, content: str) -> None:
    """Place the order and take it out of the cart, both or neither, and once."""
    with changing(request) as cart:
        new = placement.placed(message.order) is None
        placement.place(message, content)
        if new:
            cart.take(message.order, {line.sku: line.quantity for line in message.lines})


def _again(request: HttpRequest, order: UUID, *, same: bool) -> HttpResponse:
    """Redirect to the placed order; if the content differs, show it with a notice (409)."""
    if same:
        access.remember(request, order)
        return see_other(access.link(order))
    return order_page.show(request, order, notice=str(ORDERED_BEFORE), status=HTTPStatus.CONFLICT)


def _show(
    request: HttpRequest, cart: Cart, priced: PricedCart, form: CheckoutForm, problem: str = ""
) -> HttpResponse:
    """Show the form with a new token; 422 with errors."""
    context = {
        "form": form if priced.lines else None,
        "cart": priced,
        "problem": problem,
        "token": Token.offer(cart.id, priced).sign() if cart.id and priced.lines else "",
    }
    wrong = problem or form.errors
    status = HTTPStatus.UNPROCESSABLE_ENTITY if wrong else HTTPStatus.OK
    return render(request, "shop/checkout.html", context, status=status)


def _too_many(
    request: HttpRequest, cart: Cart, priced: PricedCart, form: CheckoutForm
) -> HttpResponse:
    response = _show(request, cart, priced, form, TOO_MANY % {"minutes": ORDERS.seconds // 60})
    response.status_code = HTTPStatus.TOO_MANY_REQUESTS
    response["Retry-After"] = str(ORDERS.seconds)
    return response


def _message(token: Token, priced: PricedCart, form: CheckoutForm, request: HttpRequest) -> Message:
    address: Address = form.address()
    currency = priced.lines[0].product.currency
    language = get_language() or "en"
    mail: Mail = placement.confirmation(token.order, address.name, token.total, currency, language)
    return Message(
        order=token.order,
        email=form.cleaned_data["email"],
        address=address,
        payment_method=form.cleaned_data["payment_method"],
        currency=currency,
        total=token.total,
        lines=[line.as_line() for line in priced.lines],
        confirmation=mail,
        customer=request.user.pk,
        language=language,
    )


def _known(request: HttpRequest) -> dict[str, str]:
    """Return initial values for a signed-in customer."""
    if not request.user.is_authenticated:
        return {}
    address = usual_address(request.user)
    name = {"name": request.user.get_full_name(), "email": request.user.email}
    return {**name, **(asdict(address) if address else {})}
