"""How a stack starts: wherever its output goes, until it is ready, once a folder, and all of it again."""

import os
import re
import signal
import socket
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from drill.stack import LEADERS, SUPERVISORS, WORKERS, Stack, free_port
from drill.waiting import wait_for
from sasweb.stack import folders

pytestmark = [pytest.mark.stack, pytest.mark.timeout(180)]

PRESENT = "SELECT instance FROM orchestration_worker WHERE pid = %s"
LINE = re.compile(r"^\d\d:\d\d:\d\d [\w.-]+ +[A-Z]+ +\S", re.MULTILINE)


class Printed:
    """What comes out of a socket, as it comes."""

    def __init__(self, end: socket.socket) -> None:
        self.text = ""
        threading.Thread(target=self._read, args=(end,), daemon=True).start()

    def _read(self, end: socket.socket) -> None:
        with end:
            while data := end.recv(65_536):
                self.text += data.decode()


@contextmanager
def started(stack: Stack, **environment: str):
    """Start a stack whose output is a socket, as under systemd."""
    folders.make(stack.folder)
    ours, theirs = socket.socketpair()
    printed = Printed(ours)
    with theirs:
        stack.process = subprocess.Popen(
            stack.command, env={**stack.environment, **environment}, cwd=folders.PROJECT,
            stdout=theirs, stderr=theirs, start_new_session=True,
        )  # fmt: skip
    try:
        yield printed
    finally:
        if stack.process.poll() is None:
            stack.stop()


@pytest.fixture(scope="module")
def stack():
    stack = Stack("starting")
    with started(stack) as printed:
        stack.printed = printed
        wait_for(lambda: "the data stays" in printed.text, "it is ready", 90)
        yield stack


def test_what_it_says_is_whole_lines_and_no_password(stack):
    assert re.search(
        r"Ready\. It took [\d.]+ s; a task went through all parts in [\d.]+ s\.", stack.printed.text
    )
    assert LINE.search(stack.printed.text)
    for name in ("admin_password", "operator_password", "example_token"):
        secret = stack.folder / "secrets" / name
        assert str(secret) in stack.printed.text
        assert secret.read_text() not in stack.printed.text


def test_when_it_is_ready_all_are_at_work_and_an_order_is_done_at_once(stack):
    for name in (*WORKERS, *LEADERS):
        wait_for(lambda name=name: stack.sql(PRESENT, stack.pid(name)), f"{name} is there", 5)
    assert stack.leader()
    stack.place(1)
    stack.processed(2, 5)  # the canary is the other


def test_it_listens_to_this_machine_alone(stack):
    listening = {
        line.split()[1]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if line.split()[3] == "0A"  # LISTEN
    }
    for port in (stack.port, stack.sandbox_port):
        assert {one for one in listening if one.endswith(f":{port:04X}")} == {
            f"0100007F:{port:04X}"
        }


@pytest.mark.parametrize(
    "name", ["work-payment-2", "work-scheduler-1", "supervisor-1", "web", "sandbox"]
)
def test_a_process_that_is_killed_is_there_again_as_another(stack, name):
    old = stack.pid(name)
    before = stack.sql(PRESENT, old)
    stack.kill(name)
    new = stack.pid(name)
    title = Path(f"/proc/{new}/cmdline").read_text()
    wait_for(
        lambda: name in Path(f"/proc/{new}/cmdline").read_text() or "gunicorn" in title,
        "a title",
        5,
    )
    if before:
        wait_for(lambda: stack.sql(PRESENT, new), "it is at work again", 5)
        assert stack.sql(PRESENT, new)[0][0].rsplit("-", 1)[1] != before[0][0].rsplit("-", 1)[1]


def test_each_process_keeps_a_log_of_its_own(stack):
    log = (stack.folder / "logs" / "supervisor-2.log").read_text()
    log += (stack.folder / "logs" / "supervisor-1.log").read_text()
    assert "leads now" in log
    assert set(re.findall(r"^\S+ (\S+) ", log, re.MULTILINE)) <= set(SUPERVISORS)


def test_a_second_one_in_the_same_folder_is_refused(stack):
    ports = {"PORT": str(free_port()), "SANDBOX_PORT": str(free_port())}
    second = subprocess.run(
        stack.command, env={**stack.environment, **ports}, cwd=folders.PROJECT,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert second.returncode == 1
    assert f"A stack that runs uses {stack.folder}" in second.stderr


def test_when_the_manager_is_killed_nothing_is_left(stack):
    """Nor does what is left keep the next one from starting."""
    pids = [one["pid"] for one in stack.manage("getAllProcessInfo") if one["pid"]]
    os.kill(stack.process.pid, signal.SIGKILL)
    stack.process.wait(10)
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "all have ended", 20)


def test_a_part_that_cannot_start_is_named_with_the_end_of_its_log_and_all_stops():
    stack = Stack("broken", DJANGO_SETTINGS_MODULE="tests.stack.broken", PRELOAD="0")
    with started(stack) as printed:
        assert stack.process.wait(120) == 1
        wait_for(lambda: "Stopping" in printed.text, "it says that it stops")
    assert "Not ready: work-audit ends again and again." in printed.text
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
def test_what_cannot_be_listened_on_is_said_before_anything_starts(variables, why):
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


def test_a_host_that_others_reach_is_opened_and_said_so():
    stack = Stack("open", HOST="0.0.0.0")
    with started(stack) as printed:
        wait_for(lambda: "without TLS" in printed.text, "it says that it is open", 90)
        asked = f"GET / HTTP/1.0\r\nHost: shop.{socket.gethostname()}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", stack.port), 10) as client:
            client.sendall(asked)
            assert client.recv(100).split(b"\r\n")[0].endswith(b"200 OK")
