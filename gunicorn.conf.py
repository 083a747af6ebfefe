"""How the web server runs, wherever it is started from here: `gunicorn sasweb.wsgi`."""

import os

from gunicorn.config import Config
from gunicorn.glogging import Logger

from sasweb import log


class logger_class(Logger):  # noqa: N801 - the name of the setting
    """The server's own log, in the format of all others."""

    def setup(self, cfg: Config) -> None:
        """Have its handlers write lines of the one log."""
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(log.formatter())


control_socket_disable = True  # it would lie in the home, one for all stacks of a user
threads = 4  # they take turns to compute, so more would only make each request slower


def post_fork(_server: object, _worker: object) -> None:
    """Have each process be a session: Linux may share the processor equally among sessions.

    Each connection to Postgres is one, so the web server would get no more of a full machine, with
    all workers beside it, than the statements of any one of them.
    """
    os.setsid()
