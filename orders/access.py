"""Who may see whose order: whoever has its signed link, or placed it in this session or account.

An order of an account does not exist for anybody else. A guest's order has no account to ask for:
without its link its address shows a stub with nothing personal in it.
"""

from uuid import UUID

from django.core.signing import Signer
from django.http import HttpRequest
from django.urls import reverse
from django.utils.crypto import constant_time_compare

KEY = "orders"
REMEMBERED = 50  # orders per session
_signer = Signer(salt="orders.link")


def signature(order: UUID) -> str:
    """Return what a link to an order carries so that its holder may see it all."""
    return _signer.signature(str(order))


def link(order: UUID) -> str:
    """Return the address at which its holder may see all of an order."""
    return f"{reverse('shop:order', args=[order])}?t={signature(order)}"


def remember(request: HttpRequest, order: UUID) -> None:
    """Let this session see an order from now on."""
    known = [one for one in request.session.get(KEY, []) if one != str(order)]
    request.session[KEY] = [*known, str(order)][-REMEMBERED:]


def may_see(request: HttpRequest, order: UUID, customer: int | None) -> bool:
    """Say whether this request may see all of an order; `customer` is the account it belongs to."""
    if constant_time_compare(request.GET.get("t", ""), signature(order)):
        return True
    if str(order) in request.session.get(KEY, []):
        return True
    return customer is not None and request.user.pk == customer
