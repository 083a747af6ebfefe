"""Who may see an order: holders of its signed link, its account, and the browser of a guest.

Others get 404 for an order of an account. A guest's order has no account, so without the link its
page shows a stub without personal data. Staff get a link that expires soon: it shows what the
customer sees, without actions in the customer's name.
"""

from contextlib import suppress
from functools import cache
from uuid import UUID

from django.core.signing import BadSignature, Signer, TimestampSigner
from django.http import HttpRequest
from django.urls import reverse

from orders import visitors

KEY = "orders"
MAX_REMEMBERED = 50  # orders per browser
STAFF_LINK_LIFE = 3600  # seconds
SALT = "orders.link"


# Made when they are used: a process that signs nothing has no key to make them with.
@cache
def _links() -> Signer:
    return Signer(salt=SALT)


@cache
def _staff_links() -> TimestampSigner:
    return TimestampSigner(salt="orders.look")


def signature(order: UUID) -> str:
    """Return the signature that gives a link access to an order."""
    return _links().signature(str(order))


def link(order: UUID) -> str:
    """Return the path of an order's page, signed for full access."""
    return f"{reverse('shop:order', args=[order])}?t={signature(order)}"


def remember(request: HttpRequest, order: UUID) -> None:
    """Let a guest's browser see an order from now on; an account sees its own."""
    if request.user.is_authenticated or str(order) in visitors.content(request).get(KEY, []):
        return
    # without room for another row, the link alone shows it
    with suppress(visitors.TooManyVisitors), visitors.changing(request) as content:
        content[KEY] = [*content.get(KEY, []), str(order)][-MAX_REMEMBERED:]


def may_see(request: HttpRequest, order: UUID, customer: int | None) -> bool:
    """Return whether a request may see all of an order; `customer` is the id of its account."""
    if _is_signed(order, request.GET.get("t", "")):
        return True
    if customer is not None and request.user.pk == customer:
        return True
    # the release before kept them in the session
    return any(
        str(order) in seen.get(KEY, []) for seen in (visitors.content(request), request.session)
    )


def _is_signed(order: UUID, signature: str) -> bool:
    """Return whether this key made the signature, or a former one: letters are kept for long."""
    try:
        return _links().unsign(f"{order}:{signature}") == str(order)
    except BadSignature:
        return False


def staff_link(order: UUID) -> str:
    """Return the path of an order's page, signed for staff for an hour."""
    return f"{reverse('shop:order', args=[order])}?look={_staff_links().sign(str(order))}"


def has_staff_link(request: HttpRequest, order: UUID) -> bool:
    """Return whether a request has a staff link that has not expired."""
    try:
        return _staff_links().unsign(request.GET.get("look", ""), max_age=STAFF_LINK_LIFE) == str(
            order
        )
    except BadSignature:
        return False
