"""How Django connects to Postgres: to the primary, through a pooler if there is one, and to a replica."""

from typing import Any

import dj_database_url

from orchestration.database import session

PRIMARY, STANDBY, ANY = "read-write", "prefer-standby", "any"  # servers, by libpq's names


def postgres(url: str, *, pooled: bool, server: str = PRIMARY) -> dict[str, Any]:
    """Return Django's settings for the database that a URL names."""
    found: dict[str, Any] = dict(
        dj_database_url.parse(url, conn_max_age=None, conn_health_checks=True)
    )
    # Behind a pooler that gives each transaction another connection nothing may be kept on one.
    found["DISABLE_SERVER_SIDE_CURSORS"] = pooled
    found["ENGINE"] = "django.db.backends.postgresql"
    found["OPTIONS"] = {
        # Behind one address, or one of several, there may be a standby after a failover: it is not taken.
        # From version 14 on the server says with its greeting whether it takes writes: no round trip more.
        # A pooler's greeting may be that of an earlier server.
        "target_session_attrs": ANY if pooled else server,
        **found.get("OPTIONS", {}),
        "application_name": "sas",
        "connect_timeout": 5,
        # a server that vanishes without a word is noticed in some twenty seconds, not in two hours
        "keepalives_idle": 10,
        "keepalives_interval": 3,
        "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
        # behind a pooler they are the role's (docs/run/install.md), and each process looks whether they are
        **({} if pooled else {"options": session.options()}),
    }
    return found
