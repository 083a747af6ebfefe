"""Amounts, the cart's count and the looks of an order in templates."""

from django import template
from django.utils.translation import gettext

from orders import money as amounts
from orders.cart import Cart
from orders.models import Order, OrderStatus

register = template.Library()


@register.filter
def money(amount: int, currency: str = "EUR") -> str:
    """Show an amount in minor units: 1250 → "€12.50"."""
    return amounts.money(amount, currency)


@register.filter
def local(text: str) -> str:
    """Show what is said of a product in the visitor's language, where it is known in it."""
    return gettext(text) if text else ""


BADGES = {
    OrderStatus.RECEIVED: "processing",
    OrderStatus.CONFIRMED: "processed",
    OrderStatus.FAILED: "error",
    OrderStatus.UNDOING: "undoing",
    OrderStatus.UNDONE: "undone",
}


@register.filter
def badge(order: Order) -> str:
    """Return the looks of an order's status."""
    return BADGES[OrderStatus(order.status)]


@register.simple_tag(takes_context=True)
def cart_count(context: template.Context) -> int:
    """Return how many pieces are in the cart of this session."""
    return Cart(context["request"].session).count
