"""A process dies at the crash point that CRASH_AT names."""

import signal
import subprocess
import sys

import pytest

from sasweb.stack import folders

PASSES = """
from orchestration.cluster.crash_points import reached
reached("a")
reached("b", [])
reached("b", "first")
print("here", flush=True)
reached("b", "second")
print("there", flush=True)
"""


def run(crash_at):
    environment = {"CRASH_AT": crash_at} if crash_at is not None else {}
    return subprocess.run(
        [sys.executable, "-c", PASSES],
        env=environment,
        cwd=folders.PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("crash_at", [None, "", "c:1", "b:3", "b:1:third"])
def test_crash_point_not_reached(crash_at):
    done = run(crash_at)
    assert (done.returncode, done.stdout) == (0, "here\nthere\n")


@pytest.mark.parametrize("crash_at", ["b:2", "b:1:second"])
def test_crash_point_at_nth_passing(crash_at):
    done = run(crash_at)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "here\n")


@pytest.mark.parametrize("crash_at", ["b", "b:1", "b:1:first"])
def test_crash_point_ignores_passing_without_items(crash_at):
    done = run(crash_at)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")
