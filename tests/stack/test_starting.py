"""The start of a stack: output, readiness, restarts of its processes, and refusals."""

import os
import re
import shutil
import signal
import socket
import subprocess
import threading
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg2
import pytest

from drill.process import free_port
from drill.process_names import LEADERS, SUPERVISORS, WORKERS
from drill.stack import Stack
from drill.verdict import audit
from drill.waiting import wait_for
from sasweb.stack import folders

pytestmark = [pytest.mark.stack, pytest.mark.timeout(180)]

PRESENT = "SELECT instance FROM orchestration_worker WHERE pid = %s"
LINE = re.compile(r"^\d\d:\d\d:\d\d [\w.-]+ +[A-Z]+ +\S", re.MULTILINE)


class Printed:
    """The text read from a socket so far."""

    def __init__(self, end: socket.socket) -> None:
        self.text = ""
        threading.Thread(target=self._read, args=(end,), daemon=True).start()

    def _read(self, end: socket.socket) -> None:
        with end:
            while data := end.recv(65_536):
                self.text += data.decode()


@contextmanager
def started(stack: Stack):
    """Start a stack whose output is a socket, as under systemd."""
    own, other = socket.socketpair()
    printed = Printed(own)
    with other:
        stack.launch(stdout=other, stderr=other)
    try:
        yield printed
    finally:
        stack.stop()


@pytest.fixture(scope="module")
def stack():
    stack = Stack("starting")
    shutil.rmtree(stack.folder, ignore_errors=True)  # all is made anew
    with started(stack) as printed:
        stack.printed = printed
        wait_for(lambda: "the data stays" in printed.text, "it is ready", 90)
        yield stack


def test_output_is_whole_lines_without_passwords(stack):
    assert re.search(
        r"Ready\. It took [\d.]+ s; a task went through all parts in [\d.]+ s\.", stack.printed.text
    )
    assert LINE.search(stack.printed.text)
    for name in ("admin_password", "operator_password", "example_token"):
        secret = stack.folder / "secrets" / name
        assert str(secret) in stack.printed.text
        assert secret.read_text() not in stack.printed.text
    assert "Warning" not in stack.printed.text  # of Python; the log's are WARNING


def test_ready_stack_processes_an_order_at_once(stack):
    for name in (*WORKERS, *LEADERS):
        wait_for(lambda name=name: stack.sql(PRESENT, stack.pid(name)), f"{name} is there", 5)
    assert stack.leader()
    stack.place(1)
    stack.processed(2, 5)  # the canary is the other


def test_stack_listens_on_the_loopback_only(stack):
    listening = {
        line.split()[1]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if line.split()[3] == "0A"  # LISTEN
    }
    for port in (stack.port, stack.sandbox_port):
        assert {address for address in listening if address.endswith(f":{port:04X}")} == {
            f"0100007F:{port:04X}"
        }


@pytest.mark.parametrize(
    "name", ["work-payment-2", "work-scheduler-1", "supervisor-1", "web", "sandbox"]
)
def test_killed_process_is_replaced(stack, name):
    old = stack.pid(name)
    before = stack.sql(PRESENT, old)
    stack.kill(name)
    new = stack.pid(name)
    line = rf"stack +WARNING {name} ended by a signal: it is started again"
    wait_for(lambda: re.search(line, stack.printed.text), "the log says so", 5)
    title = Path(f"/proc/{new}/cmdline").read_text()
    wait_for(
        lambda: name in Path(f"/proc/{new}/cmdline").read_text() or "gunicorn" in title,
        "a title",
        5,
    )
    if before:
        wait_for(lambda: stack.sql(PRESENT, new), "it is at work again", 5)
        assert stack.sql(PRESENT, new)[0][0].rsplit("-", 1)[1] != before[0][0].rsplit("-", 1)[1]


def test_web_server_is_listed_among_the_processes(stack):
    listed = "SELECT instance FROM orchestration_worker WHERE queue = 'web'"
    wait_for(lambda: stack.sql(listed), "it is at work", 10)


def test_each_process_has_a_log_file(stack):
    log = (stack.folder / "logs" / "supervisor-2.log").read_text()
    log += (stack.folder / "logs" / "supervisor-1.log").read_text()
    assert "leads now" in log
    assert set(re.findall(r"^\S+ (\S+) ", log, re.MULTILINE)) <= set(SUPERVISORS)


def test_second_stack_in_the_same_folder_is_refused(stack):
    ports = {"PORT": str(free_port()), "SANDBOX_PORT": str(free_port())}
    second = subprocess.run(
        stack.command, env={**stack.environment, **ports}, cwd=folders.PROJECT,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert second.returncode == 1
    assert f"A stack that runs uses {stack.folder}" in second.stderr


def test_database_of_replaced_migrations_is_refused_with_advice(stack):
    """Its tables do not match the code."""
    with closing(stack.connect()) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute("CREATE DATABASE replaced TEMPLATE template0")
    address = f"postgresql://postgres@/replaced?host={stack.sockets}"
    with (
        closing(psycopg2.connect(address)) as connection,
        connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(
            "CREATE TABLE django_migrations (id int, app text, name text, applied timestamptz);"
            "INSERT INTO django_migrations (app, name) VALUES ('orchestration', '0003_trouble')"
        )
    refused = Stack("replaced", DATABASE_URL=address)
    with started(refused) as printed:
        assert refused.process.wait(60) == 1
        wait_for(lambda: "Stopping" in printed.text, "it says that it stops")
    assert "`make clean`" in printed.text
    assert "Traceback" not in printed.text


def test_no_process_remains_when_the_manager_is_killed(stack):
    """The next tests start stacks, so nothing is left that would prevent that."""
    assert audit(stack, ()) == []
    pids = [process["pid"] for process in stack.manage("getAllProcessInfo") if process["pid"]]
    os.kill(stack.process.pid, signal.SIGKILL)
    stack.process.wait(10)
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "all have ended", 20)


def test_part_that_cannot_start_is_named_and_all_stop():
    stack = Stack("broken", DJANGO_SETTINGS_MODULE="tests.stack.broken", PRELOAD="0")
    stack.empty()
    with started(stack) as printed:
        assert stack.process.wait(170) == 1  # the stack itself waits for 120 s at most
        wait_for(lambda: "Stopping" in printed.text, "it says that it stops")
    # both copies are broken: the first that has ended often enough is named
    assert re.search(r"Not ready: work-audit-[12] ends again and again\.", printed.text)
    assert "    RuntimeError: the audit's worker cannot start" in printed.text
    assert "Ready." not in printed.text


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"HOST": "203.0.113.1"}, "HOST=203.0.113.1 is not an address of this machine"),
        ({"HOST": ".invalid"}, "is not an address of this machine"),
        ({"PORT": "abc"}, "PORT='abc' is not a whole number"),
        ({"PORT": "99999"}, "PORT=99999 is not a port"),
        ({"PORT": "8123", "SANDBOX_PORT": "8123"}, "each needs one of its own"),
        ({"DATA_DIR": "/proc/x"}, "cannot be made"),
        ({"HOST": "no-such-host.invalid"}, "is not an address of this machine"),
        ({"SAS_TEST_BUSY": "1"}, "cannot be used"),
    ],
)
def test_unusable_address_is_reported_before_the_start(variables, why):
    stack = Stack("refused", **variables)
    with socket.socket() as busy:
        if "SAS_TEST_BUSY" in variables:
            busy.bind(("127.0.0.1", stack.port))
            busy.listen()
        refused = subprocess.run(
            stack.command, env=stack.environment, cwd=folders.PROJECT,
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert refused.returncode == 1
    assert why in refused.stderr
    assert "Traceback" not in refused.stderr


def test_public_host_is_opened_and_reported():
    stack = Stack("open", HOST="0.0.0.0")
    stack.empty()
    with started(stack) as printed:
        wait_for(lambda: "without TLS" in printed.text, "it says that it is open", 90)
        asked = f"GET / HTTP/1.0\r\nHost: shop.{socket.gethostname()}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", stack.port), 10) as client:
            client.sendall(asked)
            assert client.recv(100).split(b"\r\n")[0].endswith(b"200 OK")
