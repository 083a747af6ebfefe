"""What is installed: requirements.lock says it all, with hashes, and under licences that are known."""

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name as name_of

ROOT = Path(__file__).parents[2]


def pinned(text):
    """Return the version of each package that a file of requirements names."""
    pins = re.findall(r"^([\w.\[\]-]+)==([\w.]+)", text, re.MULTILINE)
    return {name_of(name.partition("[")[0]): version for name, version in pins}


@pytest.fixture(scope="module")
def lock():
    return (ROOT / "requirements.lock").read_text()


def needs(package, anywhere):
    """Return what an installed package needs here, or `anywhere`."""
    try:
        requirements = [Requirement(text) for text in requires(package) or ()]
    except PackageNotFoundError:  # one of other platforms
        return set()
    return {
        name_of(requirement.name)
        for requirement in requirements
        if (anywhere and "extra" not in str(requirement.marker)) or _holds(requirement.marker)
    }


def _holds(marker: Marker | None) -> bool:
    return marker is None or marker.evaluate({"extra": ""})


def all_needs(packages, *, anywhere):
    """Return packages, and what they need, and so on."""
    collected, left = set(), set(packages)
    while left:
        package = left.pop()
        collected.add(package)
        left |= needs(package, anywhere) - collected
    return collected


def test_lock_has_the_versions_of_the_requirements(lock):
    requirements = pinned((ROOT / "requirements.txt").read_text())
    locked = pinned(lock)
    assert requirements
    assert {name: locked.get(name) for name in requirements} == requirements, "run make lock"


def test_lock_has_all_that_the_requirements_need_and_nothing_else(lock):
    requirements, locked = pinned((ROOT / "requirements.txt").read_text()), set(pinned(lock))
    assert all_needs(requirements, anywhere=False) <= locked, "run make lock"
    assert locked <= all_needs(requirements, anywhere=True), "run make lock"


def test_each_package_of_the_lock_has_hashes_and_comes_from_the_usual_place(lock):
    entries = re.split(r"\n(?=\S)", lock.strip())
    assert len(entries) == len(pinned(lock))
    assert [entry for entry in entries if not re.search(r"--hash=sha256:[0-9a-f]{64}", entry)] == []
    assert not re.search(r"://|^-", lock, re.MULTILINE)


def licences(*options):
    packages = sorted(pinned((ROOT / "requirements.lock").read_text()))
    program = Path(sys.executable).with_name("pip-licenses")
    return subprocess.run(
        [program, *options, "--packages", *packages],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_licences_are_the_expected_ones():
    answer = licences()
    assert answer.returncode == 0, answer.stderr
    assert "django-rq" in answer.stdout


def test_unexpected_licence_is_refused():
    answer = licences("--allow-only", "MIT;MIT License")
    assert answer.returncode == 1
    assert "not in allow-only licenses" in answer.stderr
