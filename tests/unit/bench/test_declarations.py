"""The benchmarks run outside of CI: that they start, and declare what is sound, is checked here."""

import os
import subprocess
import sys

import pytest

from sasweb.stack.folders import PROJECT

CHECK = """
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", "check"])
"""
LANES = {"LANES": '{"healthy": {"window": 20}}', "SERVICE_URL": "http://x", "ISOLATED": "1"}
LANED = {"lanes", "goodput", "poison"}
APART = {"peers"}  # CI does not install those


def modules():
    """Return the modules that are not started as a program or read by Django."""
    for path in sorted((PROJECT / "bench").rglob("*.py")):
        parts = path.relative_to(PROJECT).with_suffix("").parts
        if not APART & set(parts) and parts[-1] not in {"__main__", "__init__", "settings"}:
            yield parts


@pytest.mark.parametrize(
    ("settings", "variables", "laned"),
    [("bench.settings", {"AGENTS": "3"}, False), ("bench.lanes.settings", LANES, True)],
)
def test_benchmarks_start_with_declarations_that_pass_the_checks(settings, variables, laned):
    names = [".".join(parts) for parts in modules() if bool(LANED & set(parts)) == laned]
    assert len(names) > 10
    code = CHECK + "\n".join(f"import {name}" for name in names)
    environment = {
        **os.environ, **variables, "SECRET_KEY": "k" * 50, "DJANGO_SETTINGS_MODULE": settings
    }  # fmt: skip
    started = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert started.returncode == 0, started.stderr
