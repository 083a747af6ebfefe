"""One kind of process of an installation, with its secrets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WEB = ["gunicorn", "sasweb.wsgi"]  # how the command of a web server begins
FILE = "_FILE"  # how a variable ends that names the file of a secret


@dataclass(frozen=True, kw_only=True)
class Started:
    """One kind of process: its command, the seconds it may take to end, whether it reaches the outside.

    `secrets` are pairs of a variable and the secret whose file it names. Either is "" where the other has
    none: a secret that no variable names, or a file that the process is not given.
    """

    name: str
    command: list[str]
    grace: float
    outside: bool
    secrets: frozenset[tuple[str, str]] = frozenset()
    serves_shop: bool = False
    signs: bool = True
    for_people: bool = False  # a place for management commands

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


def paired(variables: Mapping[str, str], sources: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Return the secrets of a process, by its variables and by the files that secrets lie in."""
    files = {name: path for name, path in variables.items() if name.endswith(FILE)}
    named = {(name.removesuffix(FILE), sources.get(path, "")) for name, path in files.items()}
    return frozenset(
        named | {("", source) for path, source in sources.items() if path not in files.values()}
    )
