"""Letters about accounts: with a link to set a new password, or to confirm an address.

They are sent after the answer, and for a lost password the account is looked up then, too: so the answer
takes as long for an address without an account, and while the mail server is slow.
"""

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.core.mail import send_mail
from django.db import connection
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from orders.normal import email_key
from orders.rate_limit import Limit

logger = logging.getLogger(__name__)
LETTERS = Limit("password-letter", most=3, seconds=3600)  # to one address
MOST_WAITING = 200  # letters of one process; more are a flood


@dataclass(frozen=True, kw_only=True)
class Letter:
    """What a letter is made from: its template, its page, and who may get it."""

    template: str
    route: str  # of the page that sets a password
    users: Callable[[str], Iterable[User]]  # by the e-mail address that was typed


def send_later(letter: Letter, email: str) -> None:
    """Send a letter to the accounts of an address, if it has any, in another thread."""
    threads = _threads()
    if threads._work_queue.qsize() < MOST_WAITING:  # noqa: SLF001 - the pool has no other measure
        threads.submit(_send, letter, email, translation.get_language() or settings.LANGUAGE_CODE)


def post_later(template: str, context: dict[str, Any], to: str) -> None:
    """Write a letter in the language of now, and send it in another thread."""
    subject, _, body = render_to_string(template, context).strip().partition("\n")
    threads = _threads()
    if threads._work_queue.qsize() < MOST_WAITING:  # noqa: SLF001 - the pool has no other measure
        threads.submit(_post, subject, body, to)


@cache
def _threads() -> ThreadPoolExecutor:
    """Return this process's thread for letters, which begins with the first one: it survives no fork."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="account-letters")


def _send(letter: Letter, email: str, language: str) -> None:
    try:
        if LETTERS.allows(email_key(email)):
            with translation.override(language):
                for user in letter.users(email.strip()):
                    _write(letter, user)
    except Exception as error:  # noqa: BLE001 - the thread lives on
        logger.error("a letter for a new password was not sent: %s", type(error).__name__)
    finally:
        connection.close()  # this thread's own


def _write(letter: Letter, user: User) -> None:
    """Send a letter to the address of an account, not to the one that was typed."""
    if not (user.email and user.has_usable_password()):
        return
    key = urlsafe_base64_encode(force_bytes(user.pk))
    path = reverse(letter.route, args=[key, default_token_generator.make_token(user)])
    minutes = settings.PASSWORD_RESET_TIMEOUT // 60
    text = render_to_string(
        letter.template, {"user": user, "link": f"{settings.SITE_URL}{path}", "minutes": minutes}
    )
    subject, _, body = text.strip().partition("\n")
    send_mail(subject, body.strip() + "\n", None, [user.email])


def _post(subject: str, body: str, to: str) -> None:
    try:
        send_mail(subject, body.strip() + "\n", None, [to])
    except Exception as error:  # noqa: BLE001 - the thread lives on
        logger.error("a letter about an account was not sent: %s", type(error).__name__)
