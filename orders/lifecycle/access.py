"""Who may see an order: holders of its signed link, its session and its account.

Others get 404 for an order of an account. A guest's order has no account, so without the link its
page shows a stub without personal data. Staff get a link that expires soon: it shows what the
customer sees, without actions in the customer's name.
"""

from uuid import UUID

from django.core.signing import BadSignature, Signer, TimestampSigner
from django.http import HttpRequest
from django.urls import reverse

KEY = "orders"
MAX_REMEMBERED = 50  # orders per session
STAFF_LINK_LIFE = 3600  # seconds
SALT = "orders.link"
_signer = Signer(salt=SALT)
_staff = TimestampSigner(salt="orders.look")


def signature(order: UUID) -> str:
    """Return the signature that gives a link access to an order."""
    return _signer.signature(str(order))


def link(order: UUID) -> str:
    """Return the path of an order's page, signed for full access."""
    return f"{reverse('shop:order', args=[order])}?t={signature(order)}"


def remember(request: HttpRequest, order: UUID) -> None:
    """Let this session see an order from now on."""
    known = [one for one in request.session.get(KEY, []) if one != str(order)]
    request.session[KEY] = [*known, str(order)][-MAX_REMEMBERED:]


def may_see(request: HttpRequest, order: UUID, customer: int | None) -> bool:
    """Return whether a request may see all of an order; `customer` is the id of its account."""
    if _is_signed(order, request.GET.get("t", "")):
        return True
    if str(order) in request.session.get(KEY, []):
        return True
    return customer is not None and request.user.pk == customer


def _is_signed(order: UUID, given: str) -> bool:
    """Return whether this key made the signature, or a former one: letters are kept for long."""
    try:
        return _signer.unsign(f"{order}:{given}") == str(order)
    except BadSignature:
        return False


def staff_link(order: UUID) -> str:
    """Return the path of an order's page, signed for staff for an hour."""
    return f"{reverse('shop:order', args=[order])}?look={_staff.sign(str(order))}"


def has_staff_link(request: HttpRequest, order: UUID) -> bool:
    """Return whether a request has a staff link that has not expired."""
    try:
        return _staff.unsign(request.GET.get("look", ""), max_age=STAFF_LINK_LIFE) == str(order)
    except BadSignature:
        return False
