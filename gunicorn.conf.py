"""How the web server runs, wherever it is started from here: `gunicorn sasweb.wsgi`."""

import os

control_socket_disable = True  # it would lie in the home, one for all stacks of a user
threads = 4  # they take turns to compute, so more would only make each request slower


def post_fork(_server: object, _worker: object) -> None:
    """Have each process be a session: Linux may share the processor equally among sessions.

    Each connection to Postgres is one, so the web server would get no more of a full machine, with
    all workers beside it, than the statements of any one of them.
    """
    os.setsid()
