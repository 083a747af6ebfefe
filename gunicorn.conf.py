"""How the web server runs, wherever it is started from here: `gunicorn sasweb.wsgi`."""

import os
import shutil
import tempfile

from gunicorn.config import Config
from gunicorn.glogging import Logger
from prometheus_client import values

from sasweb import log

SHARED = "PROMETHEUS_MULTIPROC_DIR"
os.environ.setdefault("PROCESS", "web")  # its name in logs and traces


class logger_class(Logger):  # noqa: N801 - the name of the setting
    """The server's own log, in the format of all others."""

    def setup(self, cfg: Config) -> None:
        """Have its handlers write lines of the one log."""
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(log.formatter())


control_socket_disable = True  # it would lie in the home, one for all stacks of a user
threads = 4  # they take turns to compute, so more would only make each request slower


def on_starting(server: object) -> None:
    """Have the processes count requests in files of one folder: any of them reports those of all."""
    if not os.environ.get(SHARED):
        os.environ[SHARED] = server.counts = tempfile.mkdtemp(prefix="sas-web-")
    values.ValueClass = values.get_value_class()  # it was chosen when the module was loaded


def on_exit(server: object) -> None:
    """Remove the folder, if it was made here."""
    shutil.rmtree(getattr(server, "counts", ""), ignore_errors=True)


def post_fork(_server: object, _worker: object) -> None:
    """Have each process be a session: Linux may share the processor equally among sessions.

    Each connection to Postgres is one, so the web server would get no more of a full machine, with
    all workers beside it, than the statements of any one of them.
    """
    os.setsid()


def post_worker_init(worker: object) -> None:
    """Have the dashboard list the process. A database role for the shop alone may not write that."""
    from django.conf import settings

    from orchestration.cluster.heartbeat import WEB, Heartbeat

    if settings.FOR_STAFF:
        worker.heartbeat = Heartbeat(WEB)
        worker.heartbeat.begin()


def worker_exit(_server: object, worker: object) -> None:
    """Take the process off the list."""
    if heartbeat := getattr(worker, "heartbeat", None):
        heartbeat.end()
