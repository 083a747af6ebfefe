"""`manage.py startworkflow` makes code that passes the checks of this project, and refuses bad names."""

import shutil
import subprocess
import sys
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from sasweb.stack.folders import PROJECT


def make(name, folder):
    """Return the folder of a new application."""
    made = folder / name
    made.mkdir()
    call_command("startworkflow", name, made, stdout=StringIO())
    return made


def checked(*command, cwd):
    """Return what a checker says, or nothing if that is well."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=cwd, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    return done.stdout if done.returncode else ""


@pytest.mark.parametrize("name", ["trips", "n" * 32])
def test_code_is_formatted_and_linted(name, tmp_path):
    """As if it lay in this project, beside the engine."""
    assert len(list(make(name, tmp_path).rglob("*.py"))) == 6
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    beside = ["--config", 'lint.isort.known-first-party = ["orchestration"]', "--no-cache", "."]
    assert checked("ruff", "format", "--check", *beside, cwd=tmp_path) == ""
    assert checked("ruff", "check", *beside, cwd=tmp_path) == ""


def test_code_has_complete_types(tmp_path):
    assert checked("mypy", str(make("trips", tmp_path)), cwd=PROJECT) == ""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("my-trips", "cannot be the name of a Python package"),
        ("1trips", "cannot be the name of a Python package"),
        ("Trips", "use lower-case letters"),
        ("t" * 33, "has 33 characters; at most 32 are taken"),
        ("process_order", "There is a workflow 'process_order'"),
        ("orders", "conflicts with the name of an existing Python module"),
        ("json", "conflicts with the name of an existing Python module"),
    ],
)
def test_names_that_cannot_be_used_are_refused(name, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CommandError, match=words):
        call_command("startworkflow", name)
    assert list(tmp_path.iterdir()) == []


def test_what_comes_next_is_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = StringIO()
    call_command("startworkflow", "trips", stdout=printed)
    for command in ("test trips", "migrate", "work --all", "supervisor", "tasks wait trips 1"):
        assert f"manage.py {command}" in printed.getvalue()
    with pytest.raises(CommandError, match="already exists"):
        call_command("startworkflow", "trips", stdout=printed)
