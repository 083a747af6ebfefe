"""Two Postgres servers: a primary, and a standby that has every commit before it is acknowledged."""

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from drill.process import Process
from drill.servers import Clients
from drill.waiting import wait_for
from sasweb.stack import embedded, folders

IN_STEP = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'"
SETTINGS = ("listen_addresses=", "fsync=off", "max_connections=200", "shared_buffers=64MB")


class Server(Clients):
    """One Postgres with its own folder for data and socket."""

    def __init__(self, folder: Path) -> None:
        self.binaries = Path(embedded.postgres_binaries())
        self._sockets = folders.make(folder, servers=True)
        self.data = folder / "data"
        self.process: Process | None = None
        shutil.rmtree(self.data, ignore_errors=True)

    @property
    def sockets(self) -> Path:
        """Return the folder of the server's socket."""
        return self._sockets

    def run(self, program: str, *arguments: str) -> None:
        """Run one of Postgres' programs on the server's data."""
        ran = subprocess.run(
            [str(self.binaries / program), *arguments],
            check=False, capture_output=True, text=True, timeout=60, **folders.server_identity(),
        )  # fmt: skip
        assert ran.returncode == 0, f"{program}: {ran.stderr}"

    def start(self, **environment: str) -> None:
        """Start the server, and wait until it answers; `environment` adds variables."""
        command = [str(self.binaries / "postgres"), "-D", str(self.data)]
        for option in (f"unix_socket_directories={self.sockets}", *SETTINGS):
            command += ["-c", option]
        log = folders.data_dir() / "replica.log"
        variables = {**os.environ, **environment}
        self.process = Process(command, log, env=variables, **folders.server_identity())
        wait_for(self.answers, f"Postgres in {self.sockets} answers", 30)

    def die(self) -> None:
        """Kill the server and its sessions, as a power failure does."""
        assert self.process
        self.send(signal.SIGKILL)
        self.process.wait(10)

    def send(self, number: int) -> None:
        """Send a signal to the server and to its sessions."""
        assert self.process
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for pid in [self.process.pid, *map(int, children.read_text().split())]:
            with suppress(ProcessLookupError):  # a session that has ended meanwhile
                os.kill(pid, number)

    def stop(self, number: int = signal.SIGQUIT) -> None:
        """Stop the server: at once, or in order by SIGINT."""
        if self.process and self.process.poll() is None:
            self.process.end(number)

    def set(self, name: str, value: str) -> None:
        """Change a setting, in the server's files."""
        self.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        self.execute("SELECT pg_reload_conf()")


class Pair:
    """Two servers in folders `a` and `b` below `top`; `primary` is the one that takes writes."""

    def __init__(self, top: Path) -> None:
        folders.make(top, folders.PASSABLE)
        self.primary, self.standby = Server(top / "a"), Server(top / "b")
        self.hosts = f"{self.primary.sockets},{self.standby.sockets}"

    def start(self) -> None:
        """Make and start both; from then on a commit is in both."""
        primary, standby = self.primary, self.standby
        primary.run("initdb", "--pgdata", str(primary.data), "--username=postgres", "--auth=trust",
                    "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")  # fmt: skip
        primary.start()
        primary.execute(f"CREATE DATABASE {embedded.DATABASE}")
        primary.set("wal_keep_size", "256MB")  # or pg_rewind finds too little of the old one's
        standby.run("pg_basebackup", "--host", str(primary.sockets), "--username=postgres",
                    "--pgdata", str(standby.data), "--write-recovery-conf", "--no-sync",
                    "--checkpoint=fast")  # fmt: skip
        standby.start()
        self.synchronize()

    def stop(self) -> None:
        """Stop both."""
        self.primary.stop()
        self.standby.stop()

    def synchronize(self) -> None:
        """Have each commit wait for the standby from now on."""
        primary = self.primary
        primary.set("synchronous_standby_names", "*")
        wait_for(lambda: primary.execute(IN_STEP), "the standby takes part in each commit", 30)

    def promote(self) -> None:
        """Have the standby take writes, alone."""
        assert self.standby.execute("SELECT pg_is_in_recovery()") == [(True,)]
        self.standby.execute("SELECT pg_promote()")
        self.primary, self.standby = self.standby, self.primary

    def rejoin(self) -> None:
        """Have the former primary, which has stopped, return as standby of the one that took over."""
        primary, standby = self.primary, self.standby
        primary.execute("CHECKPOINT")  # pg_rewind reads the new timeline from the control file
        source = f"host={primary.sockets} user=postgres dbname=postgres"
        standby.run("pg_rewind", "--target-pgdata", str(standby.data), "--source-server", source,
                    "--write-recovery-conf", "--no-sync")  # fmt: skip
        standby.start()
        self.synchronize()
