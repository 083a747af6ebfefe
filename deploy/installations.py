"""The processes that each installation starts, as its own files say: compose, Kubernetes, systemd.

The files of an overlay are read as they are, since `kubectl kustomize` may not be there: no patch changes a
command or a grace period.
"""

import shlex
from collections.abc import Callable, Iterator, Sequence
from configparser import RawConfigParser
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from deploy import compose

HERE = Path(__file__).parent
KUBERNETES, SYSTEMD = HERE / "kubernetes", HERE / "systemd"
WEB = ["gunicorn", "sasweb.wsgi"]  # how the command of a web server begins
KUBERNETES_GRACE = 30.0  # seconds, where a pod does not say


@dataclass(frozen=True, kw_only=True)
class Started:
    """One kind of process: its command, the seconds it may take to end, whether it reaches the outside."""

    name: str
    command: list[str]
    grace: float
    outside: bool

    def queues(self, known: Sequence[str]) -> list[str]:
        """Return the queues that it serves of those `known`; none if it is not a worker."""
        if self.command[1:3] != ["manage.py", "work"]:
            return []
        match self.command[3:]:
            case ["--all"]:
                return list(known)
            case ["--all", "--but", *others]:
                return [name for name in known if name not in others]
            case named:
                return named


def by_compose() -> Iterator[Started]:
    """Return the processes of `compose.yaml`; the image's own command is the web server's."""
    for service in compose.services().values():
        yield Started(
            name=service.name,
            command=service.command or WEB,
            grace=service.grace,
            outside=service.outside,
        )


def manifests(*folders: Path) -> Iterator[dict[str, Any]]:
    """Return the Kubernetes objects in folders, kustomize's own left out."""
    for folder in folders:
        for file in sorted(folder.glob("*.yaml")):
            if file.name != "kustomization.yaml":
                yield from yaml.safe_load_all(file.read_text())


def by_kubernetes(overlay: str) -> Iterator[Started]:
    """Return the processes of an overlay and its base."""
    for one in manifests(KUBERNETES / "base", KUBERNETES / "overlays" / overlay):
        if one["kind"] in {"Deployment", "Job"}:
            labels = one["spec"]["template"]["metadata"]["labels"]
            pod = one["spec"]["template"]["spec"]
            grace = float(pod.get("terminationGracePeriodSeconds", KUBERNETES_GRACE))
            [container] = [each for each in pod["containers"] if each["name"] == "sas"]
            yield Started(
                name=one["metadata"]["name"],
                command=container["args"],
                grace=grace,
                outside=labels.get("reaches") == "outside",
            )


def by_systemd() -> Iterator[Started]:
    """Return the processes that `sas.target` starts, and the migration's."""
    wanted = _unit("sas.target")["Unit"]["Wants"].split()
    for name in [*wanted, "sas-migrate.service"]:
        service = _unit(name)["Service"]
        queues = service.get("Environment", "").removeprefix("QUEUES=")
        program, *rest = shlex.split(service["ExecStart"].replace("$QUEUES", queues))
        yield Started(
            name=name,
            command=[Path(program).name, *rest],
            grace=float(service.get("TimeoutStopSec", 90)),
            outside=True,  # a unit has the machine's network
        )


def _unit(name: str) -> RawConfigParser:
    template = name.partition("@")[0] + "@.service"
    parser = RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[method-assign,assignment]  # names have capitals
    parser.read_string((SYSTEMD / (template if "@" in name else name)).read_text())
    return parser


INSTALLATIONS: dict[str, Callable[[], Iterator[Started]]] = {
    "compose": by_compose,
    "kubernetes, small": lambda: by_kubernetes("small"),
    "kubernetes, large": lambda: by_kubernetes("large"),
    "systemd": by_systemd,
}
