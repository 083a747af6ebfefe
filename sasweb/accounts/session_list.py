"""The sessions of an account, as its owner sees and ends them.

The rows are allauth's; what they have of a session is the digest by which it is kept, not its cookie.
"""

from collections.abc import Sequence

from allauth.account.adapter import get_adapter
from allauth.usersessions.models import UserSession
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from sasweb.session_store import digest

LONGEST_AGENT = 200  # characters of what a browser says it is
# by a word in it; the first one counts, as browsers name those that they resemble, too
BROWSERS = {
    "Edg": "Edge",
    "OPR": "Opera",
    "Firefox": "Firefox",
    "Chrom": "Chrome",
    "Safari": "Safari",
}
SYSTEMS = {
    "Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Windows": "Windows",
    "Mac OS": "macOS", "Linux": "Linux",
}  # fmt: skip


@transaction.atomic
def note(request: HttpRequest, user: User) -> None:
    """Note the session of a request; forget those that have ended."""
    _live(user)
    UserSession.objects.update_or_create(
        session_key=digest(request.session.session_key or ""),
        defaults={
            "user": user,
            "ip": get_adapter(request).get_client_ip(request),
            "user_agent": request.headers.get("User-Agent", "")[:LONGEST_AGENT],
        },
    )


def of(request: HttpRequest, user: User) -> Sequence[UserSession]:
    """Return an account's sessions, the newest first, with what it is on; `current` is the request's."""
    rows = _live(user)
    here = digest(request.session.session_key or "")
    for row in rows:
        row.current = row.session_key == here
        row.device = device(row.user_agent)
    return rows


def device(agent: str) -> str:
    """Return the names of a browser and its system, or what it says of itself."""
    names = [
        next((name for word, name in known.items() if word in agent), "")
        for known in (BROWSERS, SYSTEMS)
    ]
    return ", ".join(names) if all(names) else agent[:80]


def end(user: User, *, id_: int | None = None, but: HttpRequest | None = None) -> int:
    """End an account's sessions, or one of them, or all but the request's; return how many."""
    rows = UserSession.objects.filter(user=user)
    if id_ is not None:
        rows = rows.filter(pk=id_)
    if but is not None:
        rows = rows.exclude(session_key=digest(but.session.session_key or ""))
    keys = list(rows.values_list("session_key", flat=True))
    with transaction.atomic():
        Session.objects.filter(session_key__in=keys).delete()
        UserSession.objects.filter(user=user, session_key__in=keys).delete()
    return len(keys)


def _live(user: User) -> list[UserSession]:
    """Return the rows of sessions that are good still; remove the others."""
    rows = list(UserSession.objects.filter(user=user).order_by("-created_at", "-pk"))
    keys = [row.session_key for row in rows]
    good = set(
        Session.objects.filter(session_key__in=keys, expire_date__gt=timezone.now()).values_list(
            "session_key", flat=True
        )
    )
    if ended := [row.pk for row in rows if row.session_key not in good]:
        UserSession.objects.filter(pk__in=ended).delete()
    return [row for row in rows if row.session_key in good]
