"""The shape of the sources by their syntax trees: how long functions are, and names that name nothing."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

NAMELESS = {"one", "some", "found", "wanted", "given", "kept", "meant", "told", "lone"}
ABOVE = {"console", "assurance"}  # applications that the engine runs without


class Place(NamedTuple):
    """A named thing in a file, and how many lines it has."""

    path: str
    line: int
    name: str
    lines: int = 1


def trees(texts: Mapping[str, str]) -> dict[str, ast.Module]:
    """Return the syntax tree of each Python file."""
    return {path: ast.parse(text) for path, text in texts.items() if path.endswith(".py")}


def functions(parsed: Mapping[str, ast.Module]) -> Iterator[Place]:
    """Yield each function, with its docstring."""
    for path, tree in parsed.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                yield Place(path, node.lineno, node.name, lines)


def nameless(parsed: Mapping[str, ast.Module]) -> Iterator[Place]:
    """Yield each place that gives something a name which does not say what it is."""
    for path, tree in parsed.items():
        for node in ast.walk(tree):
            for name in _bound(node):
                if name.strip("_").lower() in NAMELESS:
                    yield Place(path, getattr(node, "lineno", 0), name)


def _bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name  # not classes: `Found` is one that projects import
        case ast.keyword(arg=str(name)) | ast.alias(asname=str(name)):
            yield name


def engine(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the files of the engine without the applications above it."""
    return {
        path: text
        for path, text in texts.items()
        if Path(path).parts[0] == "orchestration"
        and Path(path).parts[1] not in ABOVE
        and path.endswith(".py")
    }


def product(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the files of engine, shop and project."""
    rooms = {"orchestration", "orders", "sasweb"}
    return {
        path: text
        for path, text in texts.items()
        if Path(path).parts[0] in rooms and path.endswith(".py")
    }
