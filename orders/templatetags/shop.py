"""Amounts and the cart's count in templates."""

from django import template

from orders import money as amounts
from orders.cart import Cart

register = template.Library()


@register.filter
def money(amount: int, currency: str = "EUR") -> str:
    """Show an amount in minor units: 1250 → "€12.50"."""
    return amounts.money(amount, currency)


@register.simple_tag(takes_context=True)
def cart_count(context: template.Context) -> int:
    """Return how many pieces are in the cart of this session."""
    return Cart(context["request"].session).count
