"""A process dies at the point that CRASH_AT names, and nowhere else."""

import signal
import subprocess
import sys

import pytest

from sasweb.stack import folders

PASSES = """
from orchestration.crashpoints import reached
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
def test_it_lives(crash_at):
    done = run(crash_at)
    assert (done.returncode, done.stdout) == (0, "here\nthere\n")


@pytest.mark.parametrize("crash_at", ["b:2", "b:1:second"])
def test_it_dies_at_the_passing_that_is_meant(crash_at):
    done = run(crash_at)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "here\n")


@pytest.mark.parametrize("crash_at", ["b", "b:1", "b:1:first"])
def test_a_passing_with_nothing_at_hand_does_not_count(crash_at):
    done = run(crash_at)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")
