"""Issue, revoke and check the tokens of applications.

A token is shown once; only its hash is stored. A plain hash is enough: unlike a password, a token is 256
random bits, which cannot be guessed.
"""

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from .. import registry
from ..database import sql
from ..models import Application, ApplicationToken
from ..models.application import Delivery
from ..models.fields import DatabaseNow

PREFIX = "sas_"
START = 10  # characters of a token by which people know it
USED_AT_PRECISION = timedelta(minutes=1)  # how exact a token's `used_at` is

# plain SQL, as each request runs it, and building the query took longer than running it
EXISTS = "SELECT 1 FROM orchestration_application WHERE name = %(name)s"
AUTHENTICATE = """
SELECT t.id, coalesce(t.used_at > (SELECT clock_timestamp()) - %(precision)s, false),
    a.id, a.name, a.delivery, a.rate, a.max_priority, t.scopes
FROM orchestration_applicationtoken t JOIN orchestration_application a ON a.id = t.application_id
WHERE t.digest = %(digest)s AND t.revoked_at IS NULL AND a.active
  AND (t.expires_at IS NULL OR t.expires_at > (SELECT clock_timestamp()))
"""

READ_STATUS, READ_METRICS = "status:read", "metrics:read"
registry.scopes[READ_STATUS] = "Fetch and acknowledge its status messages"
registry.scopes[READ_METRICS] = "Read /metrics: how the machinery is"


class UnknownScope(ValueError):
    """A token's scope is not declared."""


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The application that a token authenticates, and the token's scopes.

    >>> def may_fetch(caller: Caller | None) -> bool:
    ...     return caller is not None and READ_STATUS in caller.scopes
    >>> may_fetch(authenticate("not a token"))
    False
    """

    id: UUID
    name: str
    delivery: Delivery
    rate: int
    max_priority: int
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
    """Issue a token; return its row and the token itself, which is not stored."""
    chosen = sorted(set(scopes))
    if unknown := [scope for scope in chosen if scope not in registry.scopes]:
        near = registry.suggest(unknown[0], registry.scopes)
        raise UnknownScope(f"there is no scope {unknown[0]!r}{near}")
    if not chosen:
        raise UnknownScope(f"name a scope{registry.suggest('', registry.scopes)}")
    token = token or PREFIX + secrets.token_urlsafe(32)
    row = ApplicationToken.objects.create(
        application=application,
        label=label,
        start=token[:START],
        digest=_digest(token),
        scopes=chosen,
        created_by=by,
        expires_at=expires_at,
    )
    return row, token


def ensure(name: str, token: str, *, description: str, scopes: Iterable[str]) -> bool:
    """Create an application with a given token, for a demo; return whether the token was missing.

    >>> ensure_application("airline", "sas_of-a-demo", description="Flights", scopes=[READ_STATUS])
    True
    """
    made, _ = Application.objects.get_or_create(
        name=name, defaults={"description": description, "delivery": Delivery.PULL}
    )
    if ApplicationToken.objects.filter(digest=_digest(token)).exists():
        return False
    issue(made, label="demo", scopes=scopes, by="seed", token=token)
    return True


def ensure_consumers(**_: Any) -> None:
    """Create the rows of applications with a consumer in the engine's processes, after each migration."""
    receivers = registry.receivers
    known = Application.objects.filter(name__in=receivers).values_list("name", flat=True)
    Application.objects.bulk_create(
        [
            Application(name=name, delivery=Delivery.CONSUMER)
            for name in sorted(set(receivers) - set(known))
        ],
        ignore_conflicts=True,
    )


def revoke(tokens: Sequence[int], *, by: str) -> int:
    """Revoke tokens by their ids, permanently; return how many were not revoked before."""
    good = ApplicationToken.objects.filter(id__in=tokens, revoked_at=None)
    return good.update(revoked_at=DatabaseNow(), revoked_by=by)


def authenticate(token: str) -> Caller | None:
    """Return the caller with a token (one statement); None if it is unknown, revoked or expired.

    >>> ensure_application("airline", "sas_of-a-demo", description="Flights", scopes=[READ_STATUS])
    True
    >>> authenticate("sas_of-a-demo").name
    'airline'
    """
    if not token.startswith(PREFIX) or len(token) > 100:
        return None
    rows = sql.run(AUTHENTICATE, {"digest": _digest(token), "precision": USED_AT_PRECISION})
    if not rows:
        return None
    row, used_lately, application, name, delivery, rate, max_priority, scopes = rows[0]
    if not used_lately:  # not a write for each request
        ApplicationToken.objects.filter(id=row).update(used_at=DatabaseNow())
    return Caller(
        id=application,
        name=name,
        delivery=Delivery(delivery),
        rate=rate,
        max_priority=max_priority,
        scopes=frozenset(scopes),
    )


def is_known(name: str) -> bool:
    """Whether an application of this name exists."""
    return bool(sql.run(EXISTS, {"name": name}))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
