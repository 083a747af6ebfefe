"""The image, built without a registry: `buildah` on a base that `debootstrap` makes (as root, on Debian)."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sasweb.stack.folders import PROJECT

BASE, IMAGE = "localhost/sas-check-base", "localhost/sas-check"
RELEASE, PACKAGES = "bookworm", "python3,python3-venv,ca-certificates"
CHROOT = "--isolation=chroot"  # a container in the container that this may be
CERTIFICATES = Path("/etc/ssl/certs")  # this machine's, for the way to the packages


def require_tools(*names: str) -> None:
    """Raise SystemExit with the tools that are missing."""
    if missing := [name for name in names if not shutil.which(name)]:
        raise SystemExit(f"{', '.join(missing)} is needed; as root on Debian, apt-get install it.")


def make_base(folder: Path) -> None:
    """Make the image to build on, unless it is there: a minimal Debian with Python."""
    known = ["buildah", "inspect", "--type=image", BASE]
    if subprocess.run(known, capture_output=True, check=False).returncode == 0:
        return
    subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", RELEASE, str(folder)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    with container("scratch") as name:
        _buildah("copy", "--quiet", name, str(folder), "/")
        _buildah("commit", "--quiet", name, BASE)
    shutil.rmtree(folder)


def extract(folder: Path) -> None:
    """Write the last commit's files, and no others, to a new folder."""
    folder.mkdir()
    archive = subprocess.run(
        ["git", "archive", "HEAD"], cwd=PROJECT, check=True, capture_output=True
    )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)


def build(folder: Path, log: Path) -> None:
    """Build the image from a project's folder."""
    with log.open("w") as output:
        subprocess.run(
            [
                *("buildah", "build", CHROOT, "--build-arg", f"BASE={BASE}", "--tag", IMAGE),
                *("--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro"),
                *("--file", str(folder / "deploy" / "Containerfile"), str(folder)),
            ],
            check=True,
            stdout=output,
            stderr=output,
        )


def size(image: str) -> float:
    """Return an image's size in MB."""
    listed = json.loads(_buildah("images", "--json", image))
    parts = str(listed[0]["size"]).split()
    return float(parts[0]) * {"KB": 0.001, "MB": 1, "GB": 1000}[parts[1]]


def configured(what: str) -> list[str]:
    """Return a field of the image's configuration: `Cmd`, `User`, …"""
    value = json.loads(_buildah("inspect", "--type=image", IMAGE))["OCIv1"]["config"][what]
    return value if isinstance(value, list) else [value]


def remove() -> None:
    """Remove the image; its base stays for the next one."""
    _buildah("rmi", "--force", IMAGE)


@contextmanager
def container(image: str) -> Iterator[str]:
    """Yield the name of a container of an image, and remove it."""
    name = _buildah("from", image)
    try:
        yield name
    finally:
        _buildah("rm", name)


@contextmanager
def mounted(name: str) -> Iterator[Path]:
    """Yield where a container's files are."""
    yield Path(_buildah("mount", name))
    _buildah("umount", name)


def run(
    name: str, command: Sequence[str], *, variables: Mapping[str, str], volumes: Mapping[Path, str]
) -> list[str]:
    """Return the command that runs another in a container: a fresh /tmp, this network, read-only volumes."""
    return [
        *("buildah", "run", CHROOT, "--no-hosts", "--mount", "type=tmpfs,destination=/tmp"),
        *(part for key, value in variables.items() for part in ("--env", f"{key}={value}")),
        *(part for path, at in volumes.items() for part in ("--volume", f"{path}:{at}:ro")),
        *(name, "--", *command),
    ]


def _buildah(*arguments: str) -> str:
    done = subprocess.run(["buildah", *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()
