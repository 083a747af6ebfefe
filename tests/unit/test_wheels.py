"""What is pinned is there as a wheel wherever the README says that it runs: nothing is compiled."""

import subprocess
import sys
from pathlib import Path

import pytest

from sasweb.stack.folders import PROJECT

UV = Path(sys.executable).with_name("uv")
PLATFORMS = {
    "linux on x86-64": "x86_64-manylinux_2_28",
    "linux on arm": "aarch64-manylinux_2_28",
    "macos on arm": "aarch64-apple-darwin",
}
# Of the tests only, pure Python, and published as a source archive: pip packs it in a second.
SOURCE_ONLY = ["localstripe"]
PYTHONS = ["3.11", "3.14"]  # the ends: what is there for both is there for those in between


def missing(requirements, platform, python, target) -> str:
    """Return why the requirements and all that they lead to cannot be installed from wheels, or ''."""
    completed = subprocess.run(
        [
            *(UV, "pip", "compile", requirements, "--output-file", target, "--quiet"),
            *("--only-binary", ":all:", "--no-python-downloads"),
            *(part for name in SOURCE_ONLY for part in ("--no-binary", name)),
            *("--python-platform", PLATFORMS[platform], "--python-version", python),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    return completed.stderr if completed.returncode else ""


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_requirements_all_have_a_wheel(platform, python, tmp_path):
    dev = PROJECT / "requirements-dev.txt"  # which has the others
    assert missing(dev, platform, python, tmp_path / "found.txt") == ""


def test_requirement_without_a_wheel_is_found(tmp_path):
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("docopt==0.6.2\n")
    assert "no usable wheels" in missing(
        requirements, "linux on arm", "3.11", tmp_path / "found.txt"
    )
