"""Child processes end with their parent, and with all of their session."""

import signal
import sys
import threading
from pathlib import Path

import pytest

from drill.process import Process, end_all, require_running
from drill.waiting import wait_for

# the kernel ends it at once: a handler of Python's would wait for `pause`, which a signal just before it
# does not interrupt
WITH_CHILD = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
pid = os.fork()
pid and print(pid, flush=True)
signal.pause()
"""
IGNORING = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
while True:
    signal.pause()
"""


def started(code, log):
    process = Process([sys.executable, "-c", code], log)
    wait_for(log.read_text, "it prints a line")
    return process


def test_end_reports_signal(tmp_path):
    process = started(WITH_CHILD, tmp_path / "log")
    process.end(signal.SIGINT)
    assert process.returncode == -signal.SIGINT


def test_end_kills_rest_of_session(tmp_path):
    log = tmp_path / "log"
    process = started(WITH_CHILD, log)
    child = Path(f"/proc/{int(log.read_text())}/exe")
    process.end()
    wait_for(lambda: not child.exists(), "the child has ended")


def test_end_kills_after_timeout(tmp_path):
    process = started(IGNORING, tmp_path / "log")
    process.end(seconds=0.1)
    assert process.returncode == -signal.SIGKILL


def test_end_all_includes_ended_process(tmp_path):
    processes = [
        started(code, tmp_path / f"log{at}") for at, code in enumerate((WITH_CHILD, IGNORING))
    ]
    processes[0].end()
    end_all(processes, seconds=0.1)
    assert [process.returncode for process in processes] == [-signal.SIGTERM, -signal.SIGKILL]


def test_require_running_raises_for_ended_process(tmp_path):
    process = started(WITH_CHILD, tmp_path / "log")
    require_running([process])
    process.end()
    with pytest.raises(RuntimeError, match="ended"):
        require_running([process])


def test_process_ends_with_starting_thread(tmp_path):
    begun = []
    thread = threading.Thread(target=lambda: begun.append(started(WITH_CHILD, tmp_path / "log")))
    thread.start()
    thread.join()
    assert begun[0].wait(10) == -signal.SIGTERM
    begun[0].end()
