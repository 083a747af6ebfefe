"""Place an application's order at today's prices, once per key."""

from http import HTTPStatus
from typing import Any
from uuid import UUID

from orders.cards import NO_CARD
from orders.currency import LARGEST_TOTAL, shop_currency
from orders.lifecycle import discounts, gift_cards, placement
from orders.lifecycle.message import Message
from orders.lifecycle.order_offer import charged, handled
from orders.models import Placement
from orders.shop.forms import CheckoutForm
from orders.shop.quote import Quote

from . import pricing, schemas
from .problems import Problem, conflict, invalid

# plain SQL: the ORM took longer to build these than the database to run them
PLACEMENT = 'SELECT * FROM orders_placement WHERE "order" = %s AND application = %s'


def place_new(order: schemas.NewOrder, order_id: UUID, content: str, application: str) -> Placement:
    """Place a new order; return the placement of a parallel request with its key, if there is one."""
    try:
        message, offer = _agree(order, order_id, application)
        return placement.place(
            message,
            content,
            application=application,
            offer=offer,
            # prefixed, so that an application cannot join another's turns
            fairness_key=order.fairness_key and f"{application}/{order.fairness_key}",
            priority=order.priority,
            gift_card=order.gift_card,
        )
    except placement.OtherContent:
        raise key_used() from None
    except placement.TooMuch:
        raise _too_much() from None
    except (discounts.NotValid, gift_cards.NotValid) as refusal:
        # the parallel request may have taken the last of its code
        if before := placed(order_id, application):
            return before
        if isinstance(refusal, discounts.NotValid):
            raise pricing.no_discount(refusal) from None
        raise pricing.no_gift_card(refusal) from None


def content_of(order: schemas.NewOrder) -> dict[str, Any]:
    """Return what belongs to the order, as releases before there were regions and codes did."""
    content = order.model_dump(mode="json", exclude={"fairness_key", "priority"})
    if not content["address"]["region"]:
        del content["address"]["region"]
    for name in ("discount_code", "gift_card"):
        if not content[name]:
            del content[name]
    return content


def _agree(
    order: schemas.NewOrder, order_id: UUID, application: str
) -> tuple[Message, dict[str, Any]]:
    """Return the order's message and offer at today's prices; validates as the checkout does."""
    details = {
        **order.address.model_dump(),
        "email": order.email,
        "payment_method": order.payment_method,
    }
    form = CheckoutForm(details, free=not order.payment_method)
    if not form.is_valid():
        raise invalid([pricing.field_error(name, errors) for name, errors in form.errors.items()])
    quote = pricing.quote_of(order, application)
    charges = quote.charges
    amounts = {
        **charged(charges),
        **handled(quote.handling, quote.total),
        "total": quote.total,
        "lines": [pricing.line_json(line) for line in quote.cart.lines],
    }
    _check(order, form, quote, amounts)
    address = form.address()
    currency = quote.cart.lines[0].product.currency
    agreed = [line.as_line() for line in quote.cart.lines]
    message = Message(
        order=order_id,
        email=form.cleaned_data["email"],
        address=address,
        payment_method=form.pays_by if quote.to_pay else NO_CARD,
        currency=currency,
        total=quote.total,
        lines=agreed,
        confirmation=placement.confirmation(
            order_id, address.name, quote.total, currency, order.language, charges, quote.handling
        ),
        language=order.language,
        charges=charges,
        handling=quote.handling,
    )
    return message, {**amounts, "currency": currency}


def _check(
    order: schemas.NewOrder, form: CheckoutForm, quote: Quote, amounts: dict[str, Any]
) -> None:
    """Raise `Problem` for another total than was expected, and without a payment where one is due."""
    if order.expected_total not in {None, quote.total}:
        raise conflict(
            "price_changed",
            f"The total is {quote.total}, not {order.expected_total}. Nothing was ordered.",
            **amounts,
        )
    if form.free and quote.to_pay:
        missing = form.fields["payment_method"].error_messages["required"]
        raise invalid([pricing.field_error("payment_method", [missing])])


def key_used() -> Problem:
    """Return the refusal of a key that has another order."""
    return Problem(
        status=HTTPStatus.UNPROCESSABLE_ENTITY,
        code="key_used",
        detail="This Idempotency-Key was used for another order.",
    )


def _too_much() -> Problem:
    return Problem(
        status=HTTPStatus.UNPROCESSABLE_ENTITY,
        code="too_much",
        detail=f"The total of one order is at most {LARGEST_TOTAL} in minor units of {shop_currency()}. "
        "Nothing was ordered.",
    )


def placed(order: UUID, application: str) -> Placement | None:
    """Return an application's placement, if there is one."""
    return next(iter(Placement.objects.raw(PLACEMENT, [order, application])), None)
