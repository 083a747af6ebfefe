"""What is pinned is there as a wheel wherever the README says that it runs: nothing is compiled."""

import subprocess
import sys

import pytest

from sasweb.stack.folders import PROJECT

PLATFORMS = {
    # pip takes the tags that it is given, and derives no older ones from them
    "linux on x86-64": ["manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"],
    "linux on arm": ["manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"],
    "macos on arm": ["macosx_14_0_arm64", "macosx_12_0_arm64", "macosx_11_0_arm64"],
}
# The ends: what is there for both is there for those in between. One for each platform, as resolving takes
# half a minute of both cores; the tests themselves run with 3.11 on x86-64.
PYTHONS = {"linux on x86-64": "3.14", "linux on arm": "3.11", "macos on arm": "3.14"}


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("platform", "python"), PYTHONS.items())
def test_requirements_all_have_a_wheel(platform, python, tmp_path):
    tags = [part for tag in PLATFORMS[platform] for part in ("--platform", tag)]
    found = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed"),
            *("--target", str(tmp_path), "--only-binary=:all:", "--python-version", python, *tags),
            *("--requirement", str(PROJECT / "requirements-dev.txt")),  # which has the others
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
