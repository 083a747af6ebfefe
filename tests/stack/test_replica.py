"""The state store is replicated (P15): its server is lost, and a standby takes over."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import psycopg2
import pytest

from drill.process import Process
from drill.run import Run, prepare
from drill.servers import Clients
from drill.stack import Stack
from drill.verdict import verdict
from drill.waiting import wait_for
from sasweb.stack import embedded, folders

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]
ORDERS = 80
SYNCHRONOUS = "ALTER SYSTEM SET synchronous_standby_names = '*'"


class Server(Clients):
    """One Postgres with its own folder for data and socket."""

    sockets = None

    def __init__(self, folder: Path) -> None:
        self.binaries = Path(embedded.postgres_binaries())
        self.sockets = folders.make(folder, servers=True)
        self.data = folder / "data"
        self.process = None

    def run(self, program, *arguments):
        subprocess.run(
            [str(self.binaries / program), *arguments],
            check=True, capture_output=True, text=True, timeout=60, **folders.server_identity(),
        )  # fmt: skip

    def start(self):
        options = [f"unix_socket_directories={self.sockets}", "listen_addresses=", "fsync=off"]
        command = [str(self.binaries / "postgres"), "-D", str(self.data)]
        for option in [*options, "max_connections=100", "shared_buffers=64MB"]:
            command += ["-c", option]
        log = folders.data_dir() / "replica.log"
        self.process = Process(command, log, **folders.server_identity())
        wait_for(self.answers, f"Postgres in {self.sockets} answers", 30)

    def die(self):
        """Kill the server and its sessions, as a power failure does."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for pid in [self.process.pid, *map(int, children.read_text().split())]:
            os.kill(pid, signal.SIGKILL)
        self.process.wait(10)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.end(signal.SIGQUIT)


class Replicated(Stack):
    """A stack whose processes know both servers; its own connections use the one that takes writes."""

    def __init__(self, name, servers):
        hosts = ",".join(str(server.sockets) for server in servers)
        super().__init__(name, DATABASE_URL=f"postgresql://postgres@/sas?host={hosts}")
        self.hosts = hosts

    def connect(self, database="sas"):
        return psycopg2.connect(
            dbname=database, user="postgres", host=self.hosts, application_name="drill",
            target_session_attrs="read-write",
        )  # fmt: skip


@pytest.fixture
def servers():
    # beside the data folder of the tests, as short a path as theirs: a socket's may not be long
    top = folders.make(folders.data_dir() / "ha", folders.PASSABLE)
    primary, standby = Server(top / "a"), Server(top / "b")
    for server in (primary, standby):
        shutil.rmtree(server.data, ignore_errors=True)
    try:
        primary.run("initdb", "--pgdata", str(primary.data), "--username=postgres", "--auth=trust",
                    "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")  # fmt: skip
        primary.start()
        primary.execute("CREATE DATABASE sas")
        standby.run("pg_basebackup", "--host", str(primary.sockets), "--username=postgres",
                    "--pgdata", str(standby.data), "--write-recovery-conf", "--no-sync",
                    "--checkpoint=fast")  # fmt: skip
        standby.start()
        primary.execute(SYNCHRONOUS)  # from now on a commit is in both
        primary.execute("SELECT pg_reload_conf()")
        wait_for(lambda: primary.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"),
                 "the standby takes part in each commit", 20)  # fmt: skip
        yield primary, standby
    finally:
        primary.stop()
        standby.stop()


@pytest.fixture
def stack(servers):
    running = Replicated("replica", servers).start()
    try:
        prepare(running)
        yield running
    finally:
        running.stop()


def test_standby_takes_over_and_accepted_orders_end_once(stack, servers):
    primary, standby = servers
    run = Run(stack)
    run.place(ORDERS, flying=ORDERS)
    assert run.open() > 0
    primary.die()
    assert standby.execute("SELECT pg_is_in_recovery()") == [
        (True,)
    ]  # read-only until it is promoted
    standby.execute("SELECT pg_promote()")
    run.quiet()
    found = verdict(stack, run.orders)
    assert found.good, found.troubles[:5]
    more = run.place(10)  # on the new primary
    run.quiet()
    assert verdict(stack, more).good
