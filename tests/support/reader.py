"""A reader's own copy of the project, to change and run as the documents say."""

import shutil
import subprocess
import sys
from pathlib import Path

from sasweb.stack import folders


def project_copy(folder: Path) -> Path:
    """Copy the files that a clone would have, as they are now, and link the virtual environment."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=folders.PROJECT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (folders.PROJECT / name).exists():
            shutil.copy(folders.PROJECT / name, folder / name)
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


def install_app(project: Path, name: str) -> None:
    """Add an application to the settings of a copy."""
    settings = project / "sasweb" / "settings.py"
    text = settings.read_text()
    place = "INSTALLED_APPS = [\n"
    assert text.count(place) == 1
    settings.write_text(text.replace(place, f'{place}    "{name}",\n'))
