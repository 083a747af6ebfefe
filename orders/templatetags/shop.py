"""Template filters and tags of the shop."""

from datetime import datetime

from django import template
from django.utils.translation import gettext

from orchestration.api import format_money
from orders.currency import shop_currency
from orders.models import Order
from orders.models.order import OrderStatus
from orders.shop.cart import cart_of
from orders.times import moment as in_words

register = template.Library()


@register.filter
def money(amount: int, currency: str = "") -> str:
    """Format an amount in minor units, of the shop's currency unless another is named: 1250 → "€12.50"."""
    return format_money(amount, currency or shop_currency())


@register.filter
def local(text: str) -> str:
    """Translate a product's text into the visitor's language, if a translation exists."""
    return gettext(text) if text else ""


@register.filter
def moment(at: datetime) -> str:
    """Return a time in the visitor's zone: 22 Nov 2026, 06:23 CET."""
    return in_words(at)


BADGES = {
    OrderStatus.RECEIVED: "processing",
    OrderStatus.CONFIRMED: "processed",
    OrderStatus.FAILED: "error",
    OrderStatus.UNDOING: "undoing",
    OrderStatus.UNDONE: "undone",
}


@register.filter
def badge(order: Order) -> str:
    """Return the badge class of an order's status."""
    return BADGES[OrderStatus(order.status)]


@register.simple_tag(takes_context=True)
def cart_count(context: template.Context) -> int:
    """Return the number of items in the visitor's cart."""
    return cart_of(context["request"]).count
