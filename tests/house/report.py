"""The rows of the report: what is measured, its limit, and what it was before."""

import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median_low

from . import files, imports, shape

PACKAGE = "orchestration"
BEFORE = Path(__file__).with_name("before.toml")
LOOSE = 12  # modules of the engine outside of its packages
LAYERS = 10  # as many as can be learned: nine of the engine, and the applications above it


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measure: its value, the highest that is allowed, and the value before the rework."""

    name: str
    value: int
    limit: int | None = None
    before: int | None = None
    details: tuple[str, ...] = ()  # what a reader looks at when the limit is broken

    @property
    def broken(self) -> bool:
        """Tell whether the value is above its limit."""
        return self.limit is not None and self.value > self.limit

    @property
    def verdict(self) -> str:
        """Return the limit and whether it holds, the change, or nothing."""
        if self.limit is not None:
            return f"{'ABOVE' if self.broken else 'within'} the limit of {self.limit}"
        if self.before is not None:
            return f"{self.before:,} before, {self.value - self.before:+,}"
        return ""


def rows(root: Path) -> list[Row]:
    """Measure the tree at `root`, which is put in front of the import path."""
    sys.path.insert(0, str(root))
    try:
        graph = imports.modules(PACKAGE)
    finally:
        sys.path.remove(str(root))
    layers = imports.layers(root / ".importlinter")
    texts = files.sources(root)
    names = of_names(texts | files.sources(root, tests=True))
    return [*of_imports(graph, root / PACKAGE, layers), *of_files(texts), names]


def of_imports(graph: imports.Graph, folder: Path, layers: list[list[str]]) -> Iterator[Row]:
    """Measure rooms, loose modules, circles, imports upward and layers of a package."""
    rooms = imports.rooms(graph)
    packages = sorted(name for name in rooms if (folder / name).is_dir())
    loose = sorted(rooms.keys() - packages)
    yield Row(name="rooms", value=len(packages), details=tuple(packages))
    yield Row(name="loose modules", value=len(loose), limit=LOOSE, details=tuple(loose))
    for name, of in (("circles between rooms", rooms), ("circles between modules", graph)):
        circles = imports.circles(of)
        details = tuple(", ".join(circle) for circle in circles)
        yield Row(name=name, value=len(circles), limit=0, details=details)
    above = tuple(f"{name} imports {other}" for name, other in imports.upward(graph, layers))
    yield Row(name="imports upward", value=len(above), limit=0, details=above)
    yield Row(name="layers", value=len(layers), limit=LAYERS)


def of_files(texts: dict[str, str]) -> Iterator[Row]:
    """Measure files, lines and duplicated blocks."""
    before = tomllib.loads(BEFORE.read_text())
    modules = files.lines(
        {
            path: text
            for path, text in files.without_migrations(texts).items()
            if path.endswith(".py")
        }
    )
    longest = max(modules, key=lambda path: modules[path])
    yield Row(name="longest module, lines", value=modules[longest], limit=300, details=(longest,))
    yield from of_shape(files.without_migrations(texts), before)
    yield Row(name="median module, lines", value=median_low(modules.values()))
    lines = sum(files.lines(texts).values())
    yield Row(name="lines without tests", value=lines, before=before["lines"])
    blocks = sorted(files.duplicates(files.without_migrations(texts)))
    details = tuple(f"{block.path}:{block.line}, {block.lines} lines" for block in blocks)
    yield Row(name="duplicated blocks", value=len(blocks), before=before["blocks"], details=details)


def of_shape(texts: dict[str, str], before: dict[str, int]) -> Iterator[Row]:
    """Measure functions, and the lines of the engine and of the product."""
    parsed = shape.trees(texts)
    longest = max(shape.functions(parsed), key=lambda place: place.lines)
    where = f"{longest.path}:{longest.line} {longest.name}"
    yield Row(name="longest function, lines", value=longest.lines, limit=50, details=(where,))
    for name, counted in (("engine, lines", shape.engine), ("product, lines", shape.product)):
        value = sum(files.lines(counted(texts)).values())
        yield Row(name=name, value=value, before=before[name.partition(",")[0]])


def of_names(texts: dict[str, str]) -> Row:
    """Count the names that do not say what they name, those of tests as well."""
    nameless = shape.nameless(shape.trees(files.without_migrations(texts)))
    details = tuple(f"{place.path}:{place.line} {place.name}" for place in nameless)
    return Row(name="names that name nothing", value=len(details), limit=0, details=details)


def table(rows: Iterable[Row]) -> str:
    """Return the rows as text in three columns."""
    return "\n".join(f"{row.name:<26}{row.value:>8,}  {row.verdict}".rstrip() for row in rows)


def page(rows: Iterable[Row]) -> str:
    """Return the rows as a page of documentation."""
    lines = [f"| {row.name} | {row.value:,} | {row.verdict} |" for row in rows]
    return "\n".join([HEAD, *lines, ""])


HEAD = """\
# The layout in numbers

Written by `make house ARGS=--document`; `make house` prints the same and fails above a limit.
Rooms are the packages in `orchestration/`, loose modules the files beside them. Imports inside
functions count, those for type checkers do not. "Before" is commit c139289, and 6c8964c for engine
and product; the figures in [before.toml](../../tests/house/before.toml) were taken by the same rules.
The engine is without its pages, queries, admin, audit, doctor and retention; the product is engine, shop
and project; both are without migrations. Names are counted in tests as well.

| measure | value | verdict |
| --- | --: | --- |"""
