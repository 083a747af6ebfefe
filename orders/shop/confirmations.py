"""Confirmed e-mail addresses: letters with a link, and what an account gets once its link is followed.

The link is good for the password that was chosen with it: who signs up again for an account that is not
confirmed chooses another one, and links of before are worth nothing.
"""

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.db import transaction
from django.db.models.functions import Lower
from django.urls import reverse
from django.utils.crypto import salted_hmac

from orders.models import Order
from orders.normal import email_key, in_ascii
from orders.rate_limit import Limit

from . import account_letters

LETTERS = Limit("confirm-letter", most=3, seconds=3600)  # to one address
SALT = "orders.confirm"
LIFE = 3 * 86_400  # seconds


def awaited(user: User) -> EmailAddress | None:
    """Return the address that an account has to confirm; None if it has, or was made by an administrator."""
    rows = list(EmailAddress.objects.filter(user=user).order_by("pk"))
    return rows[0] if rows and not any(row.verified for row in rows) else None


def send(address: EmailAddress) -> None:
    """Send the letter with the link, not too often to one address."""
    if not LETTERS.allows(email_key(address.email)):
        return
    link = settings.SITE_URL + reverse("shop:confirm", args=[key_of(address)])
    context = {"link": link, "days": LIFE // 86_400}
    account_letters.post_later("account/confirm_letter.txt", context, address.email)


def send_known(user: User) -> None:
    """Tell the owner of an account that there is one, where its address was typed at the sign-up."""
    if not (user.email and LETTERS.allows(email_key(user.email))):
        return
    pages = {
        "sign_in": settings.SITE_URL + reverse("shop:sign_in"),
        "forgotten": settings.SITE_URL + reverse("shop:forgotten"),
    }
    account_letters.post_later("account/known_letter.txt", pages, user.email)


def key_of(address: EmailAddress) -> str:
    """Return the key of the link to confirm an address."""
    return signing.dumps([address.pk, _password_mark(address.user)], salt=SALT)


def address_of(key: str) -> EmailAddress | None:
    """Return the address that a key confirms; None once it is confirmed, or the key is not good any more."""
    try:
        pk, mark = signing.loads(key, salt=SALT, max_age=LIFE)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    row = EmailAddress.objects.select_related("user").filter(pk=pk, verified=False).first()
    return row if row and row.user.is_active and _password_mark(row.user) == mark else None


@transaction.atomic
def confirm(address: EmailAddress) -> int:
    """Note that an address is its account's; return how many orders of a guest join the account."""
    address.verified = True
    address.save(update_fields=["verified"])
    return join_orders(address.user, address.email)


def join_orders(user: User, email: str) -> int:
    """Give an account the orders that were placed for its address without an account."""
    key = email_key(email)
    forms = {key, in_ascii(key), email.strip().lower()}
    guests = Order.objects.annotate(lower=Lower("email")).filter(customer=None, lower__in=forms)
    # by the index guest_order_by_email
    mine = [id_ for id_, typed in guests.values_list("id", "email") if email_key(typed) == key]
    return Order.objects.filter(id__in=mine, customer=None).update(customer=user)


def _password_mark(user: User) -> str:
    return salted_hmac(SALT, user.password, algorithm="sha256").hexdigest()[:16]
