"""PgBouncer in transaction mode, in front of a Postgres that may change."""

import shutil
import signal
from pathlib import Path

from drill.process import Process
from drill.servers import POSTGRES_SOCKET, Clients
from drill.waiting import wait_for
from sasweb.stack import folders

# It passes no options of a connection on: a client that sends any is refused.
CONFIGURATION = """
[databases]
* = host={host} user=postgres pool_size={size}

[pgbouncer]
unix_socket_dir = {folder}
listen_addr =
listen_port = 5432
auth_type = any
admin_users = postgres
pool_mode = transaction
max_client_conn = 500
server_round_robin = 1
server_login_retry = 1
query_wait_timeout = {patience}
logfile = {folder}/pgbouncer.log
"""


class Pooler(Clients):
    """One PgBouncer; its clients find it in `sockets`, and wait `patience` seconds for a server."""

    def __init__(self, folder: Path, *, size: int = 20, patience: int = 10) -> None:
        self._sockets = folders.make(folder, servers=True)
        self._settings = {"size": size, "patience": patience}
        self.process: Process | None = None

    @property
    def sockets(self) -> Path:
        """Return the folder of its socket."""
        return self._sockets

    def point(self, host: Path) -> None:
        """Write the server whose sockets are in `host` into its configuration."""
        text = CONFIGURATION.format(host=host, folder=self.sockets, **self._settings)
        (self.sockets / "pgbouncer.ini").write_text(text)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        program = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin")
        assert program, "PgBouncer is missing: apt-get install pgbouncer"
        (self.sockets / POSTGRES_SOCKET).unlink(missing_ok=True)  # of one that was killed
        log = folders.data_dir() / "pgbouncer.log"
        command = [program, str(self.sockets / "pgbouncer.ini")]
        self.process = Process(command, log, **folders.server_identity())
        wait_for(self.answers, "PgBouncer answers", 20)

    def repoint(self, host: Path) -> None:
        """Switch to another server, as Patroni's callbacks or a changed DNS entry do."""
        self.point(host)
        self.execute("RELOAD", "pgbouncer")

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Stop it at once; by SIGKILL it closes nothing in order."""
        if self.process and self.process.poll() is None:
            self.process.end(number)
