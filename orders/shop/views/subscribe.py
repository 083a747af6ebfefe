"""The page on which a customer begins a subscription."""

from http import HTTPStatus
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from orchestration.api import format_money
from orders.currency import LARGEST_TOTAL, shop_currency
from orders.lifecycle.message import fingerprint
from orders.models import Product, Subscription
from orders.shop.accounts import usual_address
from orders.shop.checkout_token import BadToken, Token, read_token
from orders.shop.subscription_forms import SubscriptionForm
from orders.shop.tariff import tariff
from orders.shop.typed import form_page, typed
from orders.subscriptions import acts
from orders.subscriptions.offers import Offer, offer

from . import errors
from .account import signed_in
from .checkout import ORDERS, TOO_MUCH
from .redirect import see_other

BEGUN = _("Your subscription has begun, and its first order is placed.")
OTHER_PRICE = _(
    "The first order costs %(total)s now. Please check the subscription and send it again. Nothing was "
    "ordered."
)


@never_cache
@signed_in
@sensitive_post_parameters()
@form_page
def subscribe(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the form, or begin the subscription and redirect to its page (303)."""
    product = _product(slug)
    if request.method == "POST":
        errors.may_be_repeated(request)
        return _begin(request, product)
    form = _form(product, initial={**_known(request), **typed(request)})
    return _show(request, product, form, uuid4())


@never_cache
@sensitive_post_parameters()
@csrf_exempt  # it changes nothing, and must work with a token from before a sign-in
@require_POST  # what is typed in belongs in no address, and so in no log
def sums(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the fields of another country, and the sums and the token for it and for a quantity."""
    product = _product(slug)
    form = _form(product, initial=request.POST.dict())
    id_ = _id(request) or uuid4()
    return render(request, "shop/_checkout_sums.html", _context(product, form, id_))


def _begin(request: HttpRequest, product: Product) -> HttpResponse:
    form = _form(product, request.POST)
    try:
        token = read_token(request.POST.get("token", ""))
    except BadToken as bad:
        return _show(request, product, form, uuid4(), str(bad))
    if known := Subscription.objects.filter(id=token.order).first():  # sent twice
        return _begun(request, known)
    if not form.is_valid():
        return _show(request, product, form, token.order)
    cost = _offer(product, form)
    if problem := _problem(request, token, cost):
        return _show(request, product, form, token.order, problem)
    # from here on it may exist, so an error page must not deny it
    errors.may_be_ordered(request)
    values = {**form.values, "customer": request.user, "language": get_language() or "en"}
    new = acts.subscribe(token.order, product, cost.line.unit_price, values)
    messages.success(request, str(BEGUN))
    return _begun(request, new)


def _problem(request: HttpRequest, token: Token, cost: Offer) -> str:
    """Return why this cannot be ordered as it was shown, or ""."""
    if token != _token(token.order, cost):
        return OTHER_PRICE % {"total": format_money(cost.total, cost.currency)}
    if cost.total > LARGEST_TOTAL:
        return TOO_MUCH % {"most": format_money(LARGEST_TOTAL, shop_currency())}
    return "" if ORDERS.allows_address(request) else ORDERS.refusal_text


def _begun(request: HttpRequest, row: Subscription) -> HttpResponse:
    if row.customer_id != request.user.pk:
        raise Http404
    return see_other(row.get_absolute_url())


def _product(slug: str) -> Product:
    return get_object_or_404(Product.objects.in_stock().filter(subscribable=True), slug=slug)


def _form(product: Product, *args: Any, **kwargs: Any) -> SubscriptionForm:
    address = reverse("shop:subscribe_sums", args=[product.slug])
    return SubscriptionForm(*args, sums_at=address, **kwargs)


def _offer(product: Product, form: SubscriptionForm) -> Offer:
    """Return the price as the form is filled in."""
    return offer(product, product.due, form.amount, tariff(form.chosen_country))


def _token(id_: UUID, cost: Offer) -> Token:
    return Token(order=id_, cart=fingerprint(cost.line.as_json()), total=cost.total)


def _id(request: HttpRequest) -> UUID | None:
    try:
        return read_token(request.POST.get("token", "")).order
    except BadToken:
        return None


def _context(product: Product, form: SubscriptionForm, id_: UUID) -> dict[str, Any]:
    cost = _offer(product, form)
    return {
        "subscribes": True,  # what the button says
        "product": product,
        "form": form,
        "sums": cost.sums,
        "to_pay": cost.total,
        "token": _token(id_, cost).sign(),
        "remind": settings.SUBSCRIPTION_REMIND_DAYS,
        "notice": settings.SUBSCRIPTION_PRICE_NOTICE_DAYS,
    }


def _show(
    request: HttpRequest, product: Product, form: SubscriptionForm, id_: UUID, problem: str = ""
) -> HttpResponse:
    """Show the form with a new token; 422 with errors."""
    context = {**_context(product, form, id_), "problem": problem}
    wrong = problem or form.errors
    status = HTTPStatus.UNPROCESSABLE_ENTITY if wrong else HTTPStatus.OK
    return render(request, "shop/subscribe.html", context, status=status)


def _known(request: HttpRequest) -> dict[str, Any]:
    """Return initial values: the customer's, and the rhythm and quantity of the product's page."""
    if not isinstance(request.user, User):
        raise TypeError("this view needs a signed-in customer")
    address = usual_address(request.user)
    chosen = {name: request.GET[name] for name in ("weeks", "quantity") if name in request.GET}
    return {"email": request.user.email, **(vars(address) if address else {}), **chosen}
