"""Django's database settings for the primary (through a pooler, if any) and a replica."""

from typing import Any

import dj_database_url

from orchestration.installation.settings import DATABASE_OPTIONS

PRIMARY, STANDBY, ANY = "read-write", "prefer-standby", "any"  # servers, by libpq's names
OF_THE_SERVER = {"target_session_attrs", "options"}


def postgres(url: str, *, pooled: bool, server: str = PRIMARY) -> dict[str, Any]:
    """Return Django's settings for the database that a URL names."""
    config: dict[str, Any] = dict(
        dj_database_url.parse(url, conn_max_age=None, conn_health_checks=True)
    )
    # Behind a pooler that gives each transaction another connection nothing may be kept on one.
    config["DISABLE_SERVER_SIDE_CURSORS"] = pooled
    config["ENGINE"] = "django.db.backends.postgresql"
    usual = {name: value for name, value in DATABASE_OPTIONS.items() if name not in OF_THE_SERVER}
    config["OPTIONS"] = {
        # From version 14 on the server says with its greeting whether it takes writes: no round trip more.
        # A pooler's greeting may be that of an earlier server.
        "target_session_attrs": ANY if pooled else server,
        **config.get("OPTIONS", {}),
        **usual,
        # behind a pooler they are the role's (docs/run/install.md), and each process looks whether they are
        **({} if pooled else {"options": DATABASE_OPTIONS["options"]}),
    }
    return config
