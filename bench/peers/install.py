"""Creates the peers' environment on first use. The project's Python runs this module."""

import subprocess
import sys
from pathlib import Path

from bench.systems import PEERS_PYTHON, PEERS_VENV

REQUIREMENTS = Path(__file__).parent.parent / "requirements-peers.txt"
STAMP = PEERS_VENV / "installed.txt"


def install() -> None:
    """Create the environment unless it matches the requirements."""
    requirements = REQUIREMENTS.read_text()
    if STAMP.exists() and STAMP.read_text() == requirements:
        return
    sys.stderr.write(f"Installing the peers into {PEERS_VENV.parent.name}/{PEERS_VENV.name} …\n")
    _run(sys.executable, "-m", "venv", "--clear", str(PEERS_VENV))
    _run(PEERS_PYTHON, "-m", "pip", "install", "-qq", "--requirement", str(REQUIREMENTS))
    STAMP.write_text(requirements)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=sys.stderr)
