"""What a project adds to its own settings to have the engine (docs/use/your-project.md).

It is imported by settings, so it reads none.
"""

from ..database import session

ENGINE = ["orchestration", "django.contrib.postgres", "django_rq", "simple_history"]  # alone
APPS = [
    *ENGINE,
    "orchestration.console",
    "orchestration.assurance",
    "django.contrib.humanize",
    "django_htmx",
]

MIDDLEWARE = [  # of the console, after that which knows the user
    "django_htmx.middleware.HtmxMiddleware",
    "simple_history.middleware.HistoryRequestMiddleware",
]

# Of the connection to Postgres. Behind a pooler the role has the time-outs, and no `options` are sent.
DATABASE_OPTIONS = {
    # behind one address, or one of several, there may be a standby after a failover: it is not taken
    "target_session_attrs": "read-write",
    "application_name": "sas",
    "connect_timeout": 5,
    # a server that vanishes without a word is noticed in some twenty seconds, not in two hours
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "options": session.options(),
}
