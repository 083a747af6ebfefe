"""When a session of staff begins and ends, and whether it has shown its second factor.

What is known of one is kept in it: when it began, when it was last used by a person, and when its password
was typed. Customers' sessions have nothing of this. How its user was recognized is in what allauth keeps.
"""

import math
import time
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from allauth.account.authentication import (
    AUTHENTICATION_METHODS_SESSION_KEY,
    get_authentication_records,
)
from allauth.account.internal.flows.login import record_authentication
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest

from sasweb.accounts import second_factor, session_list

if TYPE_CHECKING:
    from sasweb.session_store import SessionStore

KEY = "staff"
TOUCH_S = 60  # a session is written again after this long, not with each request
FRESH_S = 600  # after a password: to set a second factor up


class Standing(Enum):
    """The standing of a session."""

    IN = "in"
    HALF = "half"  # the password was right, and a second factor is to be set up
    ENDED = "ended"


def works_here(user: User | AnonymousUser) -> bool:
    """Return whether an account is one of staff: it may enter the admin, or has any permission.

    None is in reach of a web process for the shop alone, nor are permissions.
    """
    if not settings.FOR_STAFF:
        return False
    return bool(user.is_staff or user.is_superuser or user.get_all_permissions())


def keep_apart(*, request: HttpRequest, user: User) -> None:
    """Mark the session of staff as theirs, whichever login they use."""
    if works_here(user):
        _store(request).begin_for_staff()


def began_here(request: HttpRequest) -> bool:
    """Return whether a session began as one of staff; no other is good for a page of staff."""
    return _store(request).of_staff


def begin(request: HttpRequest, user: User) -> None:
    """Note that a password was typed just now; a session of staff ends with its browser's time."""
    if not works_here(user):
        return
    now = time.time()
    request.session[KEY] = {"since": now, "seen": now, "password": now}
    if settings.STAFF_SESSION_HOURS:
        request.session.set_expiry(settings.STAFF_SESSION_HOURS * 3600)


def renew_factor(request: HttpRequest, user: User) -> None:
    """Note that a session, which may do so, has changed the second factors; it gets another key.

    So it has shown one of those that are set up now, or none if none is.
    """
    others = [
        record for record in get_authentication_records(request, user) if not _is_factor(record)
    ]
    request.session[AUTHENTICATION_METHODS_SESSION_KEY] = others
    for device in second_factor.devices(user)[:1]:
        record_authentication(request, user, "mfa", id=device)
    request.session.cycle_key()
    session_list.note(request, user)


def standing(request: HttpRequest, user: User) -> Standing:
    """Return the standing of a staff user's session."""
    if seconds_left(request) < 0:
        return Standing.ENDED
    known, shown = second_factor.of(user), _shown(request, user)
    is_on = _is_on(known)
    if known.keys() & shown or not (shown or is_on or settings.SECOND_FACTOR):
        return Standing.IN
    # one whose device was reset or replaced elsewhere ends: its browser may be the one that was lost
    return Standing.HALF if not (shown or is_on) and is_fresh(request) else Standing.ENDED


def lacks_factor(request: HttpRequest, user: User) -> bool:
    """Return whether a session began without the second factor that its user has now."""
    known = second_factor.of(user)
    return _is_on(known) and not known.keys() & _shown(request, user)


def seconds_left(request: HttpRequest) -> float:
    """Return after how many seconds the session ends, if its user does nothing."""
    known = _of(request)
    idle, lifetime = settings.STAFF_IDLE_MINUTES * 60, settings.STAFF_SESSION_HOURS * 3600
    ends = (known["seen"] + (idle or math.inf), known["since"] + (lifetime or math.inf))
    return float(min(ends) - time.time())


def is_fresh(request: HttpRequest) -> bool:
    """Return whether the password was typed in this session lately."""
    return bool(time.time() - _of(request)["password"] < FRESH_S)


def touch(request: HttpRequest) -> None:
    """Note that a person uses the session; a page that polls is none."""
    known, now = _of(request), time.time()
    idle = settings.STAFF_IDLE_MINUTES * 60
    timed = idle or settings.STAFF_SESSION_HOURS
    polls = "HX-Request" in request.headers and request.method == "GET" and "seen" in request.GET
    if not timed or (polls and KEY in request.session):
        return
    if KEY not in request.session or now - known["seen"] > min(TOUCH_S, idle / 10):
        request.session[KEY] = {**known, "seen": now}


def _is_on(known: dict[int, str]) -> bool:
    return any(kind != second_factor.RECOVERY for kind in known.values())


def _shown(request: HttpRequest, user: User) -> set[int]:
    """Return the ids of the factors that a session has shown."""
    records = get_authentication_records(request, user)
    return {record["id"] for record in records if _is_factor(record)}


def _is_factor(record: dict[str, Any]) -> bool:
    return bool(record["method"] == "mfa")


def _store(request: HttpRequest) -> "SessionStore":
    return cast("SessionStore", request.session)


def _of(request: HttpRequest) -> dict[str, Any]:
    """Return the session's record; one that began elsewhere counts from now."""
    now = time.time()
    record: dict[str, Any] = request.session.get(KEY) or {"since": now, "seen": now, "password": 0}
    return record
