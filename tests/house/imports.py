"""The graph of imports of a package: its rooms, its layers, circles and imports upward.

Imports inside functions count, as they couple modules too; those for type checkers do not.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from configparser import ConfigParser
from pathlib import Path

import grimp

Graph = Mapping[str, Collection[str]]


def modules(package: str) -> dict[str, set[str]]:
    """Return the modules of an importable package, each with those that it imports.

    Migrations are left out: they are history, and no module imports them.
    """
    graph = grimp.build_graph(package, exclude_type_checking_imports=True, cache_dir=None)
    own = {name for name in graph.modules if ".migrations" not in name}
    return {name: graph.find_modules_directly_imported_by(name) & own for name in sorted(own)}


def room(module: str) -> str:
    """Return the name of the room or loose module: the part below the package, or ''."""
    return module.partition(".")[2].partition(".")[0]


def rooms(graph: Graph) -> dict[str, set[str]]:
    """Return the rooms and loose modules of a package, each with those that it imports."""
    imports: dict[str, set[str]] = {room(name): set() for name in graph if room(name)}
    for name, imported in graph.items():
        if room(name):
            imports[room(name)] |= {room(other) for other in imported} - {room(name), ""}
    return imports


def circles(graph: Graph) -> list[list[str]]:
    """Return the groups of nodes that import one another, directly or through others."""
    reached = {name: _reached(name, graph) for name in graph}
    groups = {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in graph
        if name in reached[name]
    }
    return sorted(sorted(group) for group in groups)


def _reached(start: str, graph: Graph) -> set[str]:
    reached: set[str] = set()
    front = set(graph[start])
    while front:
        reached |= front
        front = {other for name in front for other in graph.get(name, ())} - reached
    return reached


def layers(config: Path) -> list[list[str]]:
    """Return the layers of import-linter's contract `layers`, the highest first."""
    parser = ConfigParser()
    parser.read_string(config.read_text())
    lines = parser["importlinter:contract:layers"]["layers"].split("\n")
    return [re.findall(r"\w+", line) for line in lines if line.strip()]


def upward(graph: Graph, order: Sequence[Iterable[str]]) -> list[tuple[str, str]]:
    """Return the imports, as (importer, imported), of rooms in a higher layer.

    Rooms of one layer that may not know each other are for import-linter, and circles for `circles`.
    """
    level = {name: number for number, names in enumerate(order) for name in names}
    return [
        (name, other)
        for name, imported in graph.items()
        for other in sorted(imported)
        if {room(name), room(other)} <= level.keys()
        if level[room(other)] < level[room(name)]
    ]
