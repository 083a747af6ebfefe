"""The checkout: one page, one form, one order."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from orchestration.api import format_money
from orders.currency import LARGEST_TOTAL, shop_currency
from orders.lifecycle import access, discounts, gift_cards, placement
from orders.lifecycle.fields import MAX_LENGTH
from orders.lifecycle.message import Address, Mail, Message
from orders.rate_limit import Limit
from orders.shop.accounts import usual_address
from orders.shop.cart import Cart, cart_of, changing, price
from orders.shop.checkout_token import BadToken, Token, read_token
from orders.shop.forms import CheckoutForm
from orders.shop.quote import Quote
from orders.shop.tariff import tariff
from orders.shop.typed import form_page, typed

from . import errors
from . import order as order_page
from .redirect import see_other

# per IP address, which a whole company may share
ORDERS = Limit("checkout", most=100, seconds=600)
CODES = Limit("discount", most=100, seconds=600)
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
OTHER_TOTAL = _(
    "The total is %(total)s now, by the country of delivery and the discount code. Please check your "
    "order below and send it again. Nothing was ordered."
)
OTHER_REST = _(
    "Your gift card pays %(part)s of this now. Please check your order below and send it again. Nothing "
    "was ordered."
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
    form = CheckoutForm(initial={**_known(request), **typed(request)})
    return _show(request, cart, _quote(request, cart, form, form.initial)[0], form)


@never_cache
@sensitive_post_parameters()
@csrf_exempt  # it changes nothing, and must work with a token from before a sign-in
@require_POST  # what is typed in belongs in no address, and so in no log
def sums(request: HttpRequest) -> HttpResponse:
    """Return the fields of another country, and the sums and the token for it and for a code."""
    form = CheckoutForm(initial=request.POST.dict())
    cart = cart_of(request)
    quote, wrong = _quote(request, cart, form, form.initial)
    context = {"form": form, **_priced(cart, quote)}
    context |= {f"wrong_{name}": words for name, words in wrong.items()}
    return render(request, "shop/_checkout_sums.html", context)


def _place(request: HttpRequest, cart: Cart) -> HttpResponse:
    form = CheckoutForm(request.POST)
    try:
        token = read_token(request.POST.get("token", ""))
    except BadToken as bad:
        return _show(request, cart, _quote(request, cart, form, form.data)[0], form, str(bad))
    form = CheckoutForm(request.POST, free=token.total == token.gift_card)
    content = token.agreed(form.details) if form.is_valid() else ""
    # look at the codes before the placement: a parallel request that takes the last of one has placed it
    quote, wrong = _quote(request, cart, form, form.data)
    before = placement.placed(token.order)
    if before is not None:
        return _again(request, token.order, same=before == content)
    for name, words in wrong.items():
        form.add_error(name, words)
    problem = _problem(cart, quote, token)
    if problem or not form.is_valid():
        return _show(request, cart, quote, form, problem)
    if not ORDERS.allows_address(request):
        return _too_many(request, cart, quote, form)
    try:
        message = _message(token, quote, form, request)
        return _order(request, message, content, form.cleaned_data["gift_card"])
    except (discounts.NotValid, gift_cards.NotValid) as refusal:  # others were faster
        is_discount = isinstance(refusal, discounts.NotValid)
        form.add_error("discount_code" if is_discount else "gift_card", str(refusal))
        left = replace(quote, discount=None) if is_discount else replace(quote, balance=0)
        return _show(request, cart, left, form)


def _quote(
    request: HttpRequest, cart: Cart, form: CheckoutForm, filled: Mapping[str, Any]
) -> tuple[Quote, dict[str, str]]:
    """Return the price as the form is filled in, and what is wrong with the codes in it, by field."""
    quote = Quote(price(cart), tariff(form.chosen_country))
    wrong: dict[str, str] = {}
    if not quote.cart.lines:
        return quote, wrong
    if code := _code(filled, "discount_code"):
        try:
            _check(CODES, request, discounts.NotValid)
            email = str(filled.get("email") or "")
            quote = replace(quote, discount=quote.discounted(code, email))
        except discounts.NotValid as refusal:
            wrong["discount_code"] = str(refusal)
    if code := _code(filled, "gift_card"):
        try:
            _check(gift_cards.GUESSES, request, gift_cards.NotValid)
            quote = replace(quote, balance=quote.payable(code))
        except gift_cards.NotValid as refusal:
            wrong["gift_card"] = str(refusal)
    return quote, wrong


def _code(filled: Mapping[str, Any], name: str) -> str:
    return str(filled.get(name) or "").strip()[: MAX_LENGTH["code"]].replace("\0", "")


def _check(limit: Limit, request: HttpRequest, refused: type[ValueError]) -> None:
    """Count a try; raise `refused` beyond the limit."""
    if not limit.allows_address(request):
        raise refused(limit.refusal_text)


def _problem(cart: Cart, quote: Quote, token: Token) -> str:
    """Return why this cart cannot be ordered as it was shown, or ""."""
    offer = Token.offer(cart.id, quote) if cart.id else None
    if offer is None or (token.order, token.cart) != (offer.order, offer.cart):
        return str(CHANGED)
    if token.total != offer.total:
        return OTHER_TOTAL % {"total": format_money(offer.total, shop_currency())}
    if token.gift_card != offer.gift_card:
        return OTHER_REST % {"part": format_money(offer.gift_card, shop_currency())}
    if quote.total > LARGEST_TOTAL:
        return TOO_MUCH % {"most": format_money(LARGEST_TOTAL, shop_currency())}
    return ""


def _order(request: HttpRequest, message: Message, content: str, gift_card: str) -> HttpResponse:
    """Place the order and take it out of the cart, both or neither, and once."""
    # from here on the order may exist, so an error page must not deny it
    errors.may_be_ordered(request)
    try:
        with changing(request) as cart:
            new = placement.placed(message.order) is None
            placement.place(message, content, gift_card=gift_card)
            if new:
                cart.take(message.order, {line.sku: line.quantity for line in message.lines})
    except placement.OtherContent:
        return _again(request, message.order, same=False)
    return _again(request, message.order, same=True)


def _again(request: HttpRequest, order: UUID, *, same: bool) -> HttpResponse:
    """Redirect to the placed order; if the content differs, show it with a notice (409)."""
    if same:
        access.remember(request, order)
        return see_other(access.link(order))
    return order_page.show(request, order, notice=str(ORDERED_BEFORE), status=HTTPStatus.CONFLICT)


def _show(
    request: HttpRequest, cart: Cart, quote: Quote, form: CheckoutForm, problem: str = ""
) -> HttpResponse:
    """Show the form with a new token; 422 with errors."""
    context = {
        "form": form if quote.cart.lines else None,
        "problem": problem,
        **_priced(cart, quote),
    }
    wrong = problem or form.errors
    status = HTTPStatus.UNPROCESSABLE_ENTITY if wrong else HTTPStatus.OK
    return render(request, "shop/checkout.html", context, status=status)


def _priced(cart: Cart, quote: Quote) -> dict[str, Any]:
    """Return what is shown of a price, and the token for it; without goods there is none."""
    sold = cart.id if quote.cart.lines else None
    return {
        "cart": quote.cart,
        "sums": quote.sums if sold else [],
        "to_pay": quote.to_pay,
        "notes": quote.notes if sold else [],
        "ships": quote.handling.ships,
        "token": Token.offer(sold, quote).sign() if sold else "",
    }


def _too_many(request: HttpRequest, cart: Cart, quote: Quote, form: CheckoutForm) -> HttpResponse:
    response = _show(request, cart, quote, form, TOO_MANY % {"minutes": ORDERS.seconds // 60})
    response.status_code = HTTPStatus.TOO_MANY_REQUESTS
    response["Retry-After"] = str(ORDERS.seconds)
    return response


def _message(token: Token, quote: Quote, form: CheckoutForm, request: HttpRequest) -> Message:
    address: Address = form.address()
    lines = [line.as_line() for line in quote.cart.lines]
    currency = quote.cart.lines[0].product.currency
    language = get_language() or "en"
    mail: Mail = placement.confirmation(
        token.order,
        address.name,
        token.total,
        currency,
        language,
        quote.charges,
        quote.handling,
    )
    return Message(
        order=token.order,
        email=form.cleaned_data["email"],
        address=address,
        payment_method=form.pays_by,
        currency=currency,
        total=token.total,
        lines=lines,
        confirmation=mail,
        charges=quote.charges,
        handling=quote.handling,
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
