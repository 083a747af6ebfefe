"""The pattern's requirements, as `requirements.toml` lists them: what is asked, the code, the tests."""

import ast
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
REQUIREMENTS = Path(__file__).with_name("requirements.toml")
MUTATIONS = Path(__file__).with_name("mutations.toml")
PAGE = ROOT / "docs" / "results" / "pattern.md"
BEGIN = "<!-- requirements: written by `make pattern ARGS=--document` -->"
END = "<!-- end of requirements -->"


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """One requirement of the pattern, or sentence of it.

    `code` are places as "path::name", `tests` are node ids; `deviates` is the decision record that
    says in which way it is met otherwise than by the letter, and why.
    """

    id: str
    title: str
    says: str
    code: tuple[str, ...]
    tests: tuple[str, ...]
    deviates: str = ""


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """One line that implements a requirement, and how it is broken; then `test` must fail.

    `file` has the `line` exactly once, with any indentation, which `becomes` gets as well.
    """

    requirement: str
    file: str
    line: str
    becomes: str
    test: str

    def applied(self, text: str) -> str:
        """Return the text of the file with the line broken; raise ValueError if it is not in it once."""
        lines = text.splitlines(keepends=True)
        places = [number for number, line in enumerate(lines) if line.strip() == self.line]
        if len(places) != 1:
            raise ValueError(f"{self.file} has the line {self.line!r} {len(places)} times")
        lines[places[0]] = lines[places[0]].replace(self.line, self.becomes)
        return "".join(lines)


def requirements() -> list[Requirement]:
    """Return all requirements, in the order of the file."""
    rows = tomllib.loads(REQUIREMENTS.read_text())["requirement"]
    return [
        Requirement(**{**row, "code": tuple(row["code"]), "tests": tuple(row["tests"])})
        for row in rows
    ]


def mutations() -> list[Mutation]:
    """Return all mutations, in the order of the file."""
    return [Mutation(**row) for row in tomllib.loads(MUTATIONS.read_text())["mutation"]]


@cache
def names(path: str) -> frozenset[str]:
    """Return the names that a module defines: functions, classes, members ("Class.member"), constants."""
    defined: set[str] = set()

    def collect(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    defined.add(prefix + name)
                case ast.ClassDef(name=name):
                    defined.add(prefix + name)
                    collect(node.body, f"{prefix}{name}.")
                case ast.Assign(targets=targets):
                    defined.update(
                        prefix + target.id for target in targets if isinstance(target, ast.Name)
                    )
                case ast.AnnAssign(target=ast.Name(id=name)):
                    defined.add(prefix + name)

    collect(ast.parse((ROOT / path).read_text()).body, "")
    return frozenset(defined)


def exists(place: str) -> bool:
    """Return whether there is what a place "path::name" or a test's node id names."""
    path, *parts = place.split("::")
    if not (ROOT / path).is_file():
        return False
    return not parts or ".".join(parts) in names(path)


def as_page(rows: list[Requirement]) -> str:
    """Return the rows as a table in Markdown."""
    text = ["| | requirement | code | tests |", "| --- | --- | --- | --- |"]
    for row in rows:
        says = f"**{row.title}.** {row.says}"
        if row.deviates:
            says += f" *Deviates: [{row.deviates[:4]}](../understand/decisions/{row.deviates}.md).*"
        text.append(f"| {row.id} | {says} | {_places(row.code)} | {_places(row.tests)} |")
    return "\n".join(text)


def _places(places: tuple[str, ...]) -> str:
    """Return places, with each path once, as the cell of a table."""
    by_path: dict[str, list[str]] = {}
    for place in places:
        path, *parts = place.split("::")
        by_path.setdefault(path, []).append(".".join(parts))
    return "<br>".join(
        f"`{path}`" + "".join(f"<br>`{name}`" for name in names if name)
        for path, names in by_path.items()
    )


def document() -> None:
    """Write the table into its page."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{as_page(requirements())}\n\n{END}{after}")
