"""The processes that each installation starts, as its own files say: compose, Kubernetes, systemd.

The files of an overlay are read as they are, since `kubectl kustomize` may not be there: no patch changes a
command, a grace period or a secret.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from deploy import compose
from deploy.pods import by_kubernetes
from deploy.started import WEB, Started, paired
from deploy.units import by_systemd

HERE = Path(__file__).parent
PEOPLE = "manage"  # the service of compose for management commands
PARTNERS = "sandbox"  # a stand-in


def by_compose(file: Path = compose.FILE) -> Iterator[Started]:
    """Return the processes of `compose.yaml`; the image's own command is the web server's."""
    for service in compose.services(file).values():
        if service.name == PARTNERS:
            continue
        yield Started(
            name=service.name,
            command=service.command or WEB,
            grace=service.grace,
            outside=service.outside,
            secrets=paired(
                service.environment, {f"/run/secrets/{name}": name for name in service.secrets}
            ),
            serves_shop=service.environment.get("SERVES") == "shop",
            signs=service.environment.get("SIGNS") != "0",
            for_people=service.name == PEOPLE,
        )


INSTALLATIONS: dict[str, Callable[[], Iterable[Started]]] = {
    "compose": by_compose,
    "kubernetes, small": lambda: by_kubernetes("small"),
    "kubernetes, large": lambda: by_kubernetes("large"),
    "systemd": by_systemd,
}
