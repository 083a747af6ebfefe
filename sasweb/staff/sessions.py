"""When a session of staff begins and ends, and whether it has shown its second factor.

What is known of one is kept in it: when it began, when it was last used by a person, when its password
was typed, and the device that showed the second factor. Customers' sessions have nothing of this.
"""

import math
import time
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest

from . import second_factor

if TYPE_CHECKING:
    from sasweb.session_store import SessionStore

KEY = "staff"
TOUCH_S = 60  # a session is written again after this long, not with each request
FRESH_S = 600  # after a password: to show the second factor, or to set one up


class Standing(Enum):
    """The standing of a session."""

    IN = "in"
    HALF = "half"  # the password was right, and the second factor is to be shown
    ENDED = "ended"


def works_here(user: User | AnonymousUser) -> bool:
    """Return whether an account is one of staff: it may enter the admin, or has any permission."""
    return bool(user.is_staff or user.is_superuser or user.get_all_permissions())


def keep_apart(*, request: HttpRequest, user: User) -> None:
    """Mark the session of staff as theirs, whichever login they use."""
    if settings.FOR_STAFF and works_here(user):
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


def show_factor(request: HttpRequest, device: int) -> None:
    """Note the device that showed the second factor; the session gets another key."""
    request.session[KEY] = {**_of(request), "device": device}
    request.session.cycle_key()


def forget_factor(request: HttpRequest) -> None:
    """Note that the account has no second factor any more."""
    request.session[KEY] = {name: value for name, value in _of(request).items() if name != "device"}


def standing(request: HttpRequest, user: User) -> Standing:
    """Return the standing of a staff user's session."""
    if seconds_left(request) < 0:
        return Standing.ENDED
    devices, shown = second_factor.devices(user), _of(request).get("device")
    if shown in devices or not (shown or devices or settings.SECOND_FACTOR):
        return Standing.IN
    # one whose device was reset or replaced elsewhere ends: its browser may be the one that was lost
    return Standing.HALF if not shown and is_fresh(request) else Standing.ENDED


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


def _store(request: HttpRequest) -> "SessionStore":
    return cast("SessionStore", request.session)


def _of(request: HttpRequest) -> dict[str, Any]:
    """Return the session's record; one that began elsewhere counts from now."""
    now = time.time()
    record: dict[str, Any] = request.session.get(KEY) or {"since": now, "seen": now, "password": 0}
    return record
