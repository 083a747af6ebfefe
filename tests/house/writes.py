"""Writes of tasks and steps in a module, by SQL or by the ORM, that do not name what they were decided on.

A write of a step names its state, attempt and generation, one of a task its state: else it may overwrite
what has changed since. The syntax tree gives the texts and the calls; the SQL is read up to the clause.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

TABLE = r'"?orchestration_(step|task|\{\w+\})"?(?!\w)'  # or one that is put in by `format`
WRITE = re.compile(rf"\b(?:UPDATE|DELETE\s+FROM)\s+(?:ONLY\s+)?{TABLE}", re.IGNORECASE)
TOKEN = re.compile(r"[();]|\bWHERE\b|\bRETURNING\b", re.IGNORECASE)
NAMED = {
    "step": (r"\bprocess_state\b", r"\battempt\b", r"\bgeneration\b"),
    "task": (r"\b(?<!process_)state\b",),
}
FIELDS = {"Step": ("process_state", "attempt", "generation"), "Task": ("state",)}
CALLS = {"update", "delete", "_raw_delete", "bulk_update", "update_or_create", "save"}


def unguarded(source: str, names: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Return the line and a word for each write that names too little.

    `names` are those of the module: what its texts are put together from.
    """
    tree = ast.parse(source)
    by_sql = [
        (line, table) for line, text in texts(tree, names) for table in unguarded_statements(text)
    ]
    return sorted(by_sql + [(call.lineno, name) for call, name in unguarded_calls(tree)])


def writes(source: str, names: Mapping[str, Any]) -> bool:
    """Return whether a module writes tasks or steps at all."""
    tree = ast.parse(source)
    by_sql = any(WRITE.search(text) for _, text in texts(tree, names))
    return by_sql or any(True for _ in _calls(tree))


def texts(tree: ast.AST, names: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield each text of a module with its line; a formatted one with the values of constants."""
    parts = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and id(node) not in parts:
            yield node.lineno, "".join(_part(value, names) for value in node.values)
        elif isinstance(node, ast.Constant) and id(node) not in parts:
            yield node.lineno, node.value if isinstance(node.value, str) else ""


def _part(part: ast.expr, names: Mapping[str, Any]) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    assert isinstance(part, ast.FormattedValue)
    try:
        return str(eval(compile(ast.Expression(part.value), "", "eval"), dict(names)))  # noqa: S307 - our own
    except NameError:  # of a function
        return "{" + ast.unparse(part.value) + "}"


def unguarded_statements(text: str) -> list[str]:
    """Return the table of each write in an SQL text that names too little in its own WHERE."""
    tables = []
    for match in WRITE.finditer(text):
        table = match[1]
        condition = _condition(text[match.end() :])
        if not all(re.search(name, condition) for name in NAMED.get(table, NAMED["step"])):
            tables.append(table)
    return tables


def _condition(rest: str) -> str:
    """Return the WHERE clause of a statement, up to its end or the end of its parentheses."""
    depth, begins = 0, None
    for token in TOKEN.finditer(rest):
        word = token[0].upper()
        depth += (word == "(") - (word == ")")
        if depth < 0 or (depth == 0 and word in {";", "RETURNING"}):
            return "" if begins is None else rest[begins : token.start()]
        if depth == 0 and word == "WHERE":
            begins = token.end()
    return "" if begins is None else rest[begins:]


def unguarded_calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    """Yield each call of the ORM that writes steps or tasks without naming enough, with the model."""
    for call, model, conditions in _calls(tree):
        if not conditions >= set(FIELDS[model]):
            yield call, model


def _calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str, set[str]]]:
    """Yield the calls that write, with the model and the fields in the conditions of their querysets."""
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)] + [tree]:
        known = _instances(function) if isinstance(function, ast.FunctionDef) else {}
        own = _own_nodes(function)
        for node in own:
            if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
                continue
            if chain := _chain(node.value, known):
                known[node.targets[0].id] = chain
        for node in own:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                chain = _chain(node.func.value, known) if node.func.attr in CALLS else None
                if chain:
                    yield node, *chain


def _own_nodes(function: ast.AST) -> list[ast.AST]:
    """Return the nodes of a function, or of a module, that are in no function within."""
    inner = {
        id(node)
        for other in ast.walk(function)
        if isinstance(other, ast.FunctionDef) and other is not function
        for node in ast.walk(other)
    }
    return [node for node in ast.walk(function) if id(node) not in inner]


def _instances(function: ast.FunctionDef) -> dict[str, tuple[str, set[str]]]:
    """Return the parameters that are a step or a task: nothing is known of what they were."""
    return {
        argument.arg: (argument.annotation.id, set())
        for argument in (*function.args.args, *function.args.kwonlyargs)
        if isinstance(argument.annotation, ast.Name) and argument.annotation.id in FIELDS
    }


def _chain(
    node: ast.expr, known: Mapping[str, tuple[str, set[str]]]
) -> tuple[str, set[str]] | None:
    """Return the model that a chain of calls begins with, and the fields that its conditions name."""
    conditions: set[str] = set()
    while True:
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr == "filter":
                conditions |= {name for keyword in node.keywords for name in _fields(keyword)}
            node = node.func
        elif isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id in FIELDS:
                return (node.value.id, conditions) if node.attr == "objects" else None
            node = node.value
        elif isinstance(node, ast.Name) and node.id in known:
            model, others = known[node.id]
            return model, conditions | others
        else:
            return None


def _fields(keyword: ast.keyword) -> tuple[str, ...]:
    """Return the field of a condition; of conditions in a mapping nothing is known."""
    return () if keyword.arg is None else (keyword.arg.partition("__")[0],)
