"""Who may see whose order: whoever has its signed link, or placed it in this session or account.

An order of an account does not exist for anybody else. A guest's order has no account to ask for:
without its link its address shows a stub with nothing personal in it. Staff get a link of another
kind: it ends soon, and whoever has it sees what the customer sees, but can do nothing in their name.
"""

from uuid import UUID

from django.core.signing import BadSignature, Signer, TimestampSigner
from django.http import HttpRequest
from django.urls import reverse
from django.utils.crypto import constant_time_compare

KEY = "orders"
REMEMBERED = 50  # orders per session
LOOK = 3600  # seconds for which staff may look at an order by one link
_signer = Signer(salt="orders.link")
_staff = TimestampSigner(salt="orders.look")


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


def look_link(order: UUID) -> str:
    """Return the address at which staff may look at all of an order for a while."""
    return f"{reverse('shop:order', args=[order])}?look={_staff.sign(str(order))}"


def may_look(request: HttpRequest, order: UUID) -> bool:
    """Say whether this request comes by a link for staff that has not ended."""
    try:
        return _staff.unsign(request.GET.get("look", ""), max_age=LOOK) == str(order)
    except BadSignature:
        return False
