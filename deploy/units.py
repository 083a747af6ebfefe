"""The processes that systemd starts, by the units and what is dropped in beside them."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from deploy.started import Started, paired

SYSTEMD = Path(__file__).with_name("systemd")
FOLDER = "/etc/sas/secrets/"
PEOPLE = "sas-manage-1.service"  # as deploy/sas-manage names its unit
SHARED = ("sas-migrate.service", "sas-grant.service", "sas-archive.service")


def by_systemd(folder: Path = SYSTEMD) -> Iterator[Started]:
    """Return the processes that `sas.target` starts, those beside it, and the worker of every queue."""
    wants = " ".join(_lines(folder / "sas.target", "Wants")).split()
    for name in [*wants, *SHARED, "sas-worker@1.service", PEOPLE]:
        yield _process(folder, name)


def _process(folder: Path, name: str) -> Started:
    instance = name.removesuffix(".service").partition("@")[2]
    files = list(_files(folder, name))
    variables: dict[str, str] = {}
    sources: dict[str, str] = {}
    for file in files:
        for line in _lines(file, "Environment"):
            variables |= dict(each.split("=", 1) for each in shlex.split(line))
        for line in _lines(file, "LoadCredential"):
            identity, path = line.replace("%i", instance).split(":", 1)
            sources[f"%d/{identity}"] = path.removeprefix(FOLDER)
    commands = [line for file in files for line in _lines(file, "ExecStart")] or ["sleep 8h"]
    queues = variables.get("QUEUES", "")
    program, *rest = shlex.split(commands[0].replace("$QUEUES", queues).replace("%i", instance))
    graces = [line for file in files for line in _lines(file, "TimeoutStopSec")] or ["90"]
    return Started(
        name=name,
        command=[Path(program).name, *rest],
        grace=float(graces[-1]),
        outside=True,  # a unit has the machine's network
        secrets=paired(variables, sources),
        serves_shop=variables.get("SERVES") == "shop",
        signs=variables.get("SIGNS") != "0",
        for_people=name == PEOPLE,
    )


def _files(folder: Path, name: str) -> Iterator[Path]:
    """Yield the files of a unit that are there: its own, and drop-ins by prefix, template and name."""
    stem, at, _ = name.removesuffix(".service").partition("@")
    template = f"{stem}{at}.service"
    parts = stem.split("-")
    prefixes = [f"{'-'.join(parts[:count])}-.service" for count in range(1, len(parts))]
    yield from (path for path in [folder / template] if path.exists())
    for unit in dict.fromkeys([*prefixes, template, name]):
        yield from sorted((folder / f"{unit}.d").glob("*.conf"))


def _lines(file: Path, key: str) -> list[str]:
    """Return the values of a key, each line's own: a key may be there several times."""
    lines = file.read_text().replace("\\\n", " ").splitlines()
    return [line.partition("=")[2] for line in lines if line.startswith(f"{key}=")]
