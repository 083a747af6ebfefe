"""`python3 -m deploy.kubernetes_secrets small FOLDER`: print the commands that make an overlay's Secrets.

Each process has one with what it needs (deploy/needs.py). FOLDER has a file for each secret, by its name
there: secret_key, database_url, shop_database_url, redis_url_web, …
"""

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path

from deploy.needs import needed
from deploy.pods import KUBERNETES, PREFIX, manifests, processes

ADDED = KUBERNETES / "archive"  # a component with a process of its own


def commands(overlay: str, folder: Path, *, namespace: str = "sas") -> Iterator[str]:
    """Yield a command for each Secret, its keys from files of a folder."""
    folders = (KUBERNETES / "base", KUBERNETES / "overlays" / overlay, ADDED)
    for process in processes(list(manifests(*folders)), {}):
        files = [
            f"--from-file={name}={folder / source}" for name, source in sorted(needed(process))
        ]
        secret = ["create", "secret", "generic", f"{PREFIX}{process.name}", *files]
        yield shlex.join(["kubectl", "-n", namespace, *secret])


def main() -> None:
    """Print them."""
    parser = argparse.ArgumentParser(prog="python3 -m deploy.kubernetes_secrets")
    parser.add_argument("overlay", choices=["small", "large"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--namespace", default="sas")
    options = parser.parse_args()
    for command in commands(options.overlay, options.folder, namespace=options.namespace):
        print(command)


if __name__ == "__main__":
    main()
