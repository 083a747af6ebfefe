"""The tokens of applications: made and shown once, revoked, and looked at with each request.

Only a hash of a token is kept. It is a plain one: a token is 256 bits of chance, which nobody finds
by trying, unlike a password.
"""

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from . import registry, sql
from .models import Application, ApplicationToken
from .models.application import Delivery
from .models.fields import DatabaseNow

PREFIX = "sas_"
START = 10  # characters of a token by which people know it
USED_EVERY = timedelta(minutes=1)  # how exact a token's `used_at` is

# with every request, so it is plain SQL: building the query took longer than running it
KNOWN = "SELECT 1 FROM orchestration_application WHERE name = %(name)s"
SHOWN = """
SELECT t.id, coalesce(t.used_at > (SELECT clock_timestamp()) - %(used_every)s, false),
    a.id, a.name, a.delivery, a.rate, a.most_priority, t.scopes
FROM orchestration_applicationtoken t JOIN orchestration_application a ON a.id = t.application_id
WHERE t.digest = %(digest)s AND t.revoked_at IS NULL AND a.active
  AND (t.expires_at IS NULL OR t.expires_at > (SELECT clock_timestamp()))
"""

READ_STATUS, READ_METRICS = "status:read", "metrics:read"
registry.scopes[READ_STATUS] = "Fetch and acknowledge its status messages"
registry.scopes[READ_METRICS] = "Read /metrics: how the machinery is"


class UnknownScope(ValueError):
    """A token would be good for something that nobody declared."""


@dataclass(frozen=True, kw_only=True)
class Caller:
    """An application that showed a token, and what the token is good for."""

    id: UUID
    name: str
    delivery: Delivery
    rate: int
    most_priority: int
    scopes: frozenset[str]


def issue(
    application: Application,
    *,
    label: str,
    scopes: Iterable[str],
    by: str,
    expires_at: datetime | None = None,
    token: str = "",
) -> tuple[ApplicationToken, str]:
    """Make a token; return its row, and the token itself, which is never seen again."""
    wanted = sorted(set(scopes))
    if unknown := [scope for scope in wanted if scope not in registry.scopes]:
        near = registry.suggest(unknown[0], registry.scopes)
        raise UnknownScope(f"there is no scope {unknown[0]!r}{near}")
    if not wanted:
        raise UnknownScope(f"name a scope{registry.suggest('', registry.scopes)}")
    token = token or PREFIX + secrets.token_urlsafe(32)
    row = ApplicationToken.objects.create(
        application=application,
        label=label,
        start=token[:START],
        digest=_digest(token),
        scopes=wanted,
        created_by=by,
        expires_at=expires_at,
    )
    return row, token


def ensure(name: str, token: str, *, description: str, scopes: Iterable[str]) -> bool:
    """Have an application with this very token, for a demo; return whether it was missing."""
    made, _ = Application.objects.get_or_create(
        name=name, defaults={"description": description, "delivery": Delivery.PULL}
    )
    if ApplicationToken.objects.filter(digest=_digest(token)).exists():
        return False
    issue(made, label="demo", scopes=scopes, by="seed", token=token)
    return True


def ensure_consumers(**_: Any) -> None:
    """Make the rows of the applications whose consumers run with us; called after every migration."""
    wanted = registry.receivers
    known = Application.objects.filter(name__in=wanted).values_list("name", flat=True)
    Application.objects.bulk_create(
        [
            Application(name=name, delivery=Delivery.CONSUMER)
            for name in sorted(set(wanted) - set(known))
        ],
        ignore_conflicts=True,
    )


def revoke(tokens: Sequence[int], *, by: str) -> int:
    """Revoke tokens by their ids, for good; return how many were not before."""
    good = ApplicationToken.objects.filter(id__in=tokens, revoked_at=None)
    return good.update(revoked_at=DatabaseNow(), revoked_by=by)


def authenticate(token: str) -> Caller | None:
    """Return who shows a token (one statement), or None if it is none of ours, revoked or expired."""
    if not token.startswith(PREFIX) or len(token) > 100:
        return None
    rows = sql.run(SHOWN, {"digest": _digest(token), "used_every": USED_EVERY})
    if not rows:
        return None
    row, used_lately, application, name, delivery, rate, most_priority, scopes = rows[0]
    if not used_lately:  # not a write for each request
        ApplicationToken.objects.filter(id=row).update(used_at=DatabaseNow())
    return Caller(
        id=application,
        name=name,
        delivery=Delivery(delivery),
        rate=rate,
        most_priority=most_priority,
        scopes=frozenset(scopes),
    )


def is_known(name: str) -> bool:
    """Say whether there is an application of this name that may be told of tasks."""
    return bool(sql.run(KNOWN, {"name": name}))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
