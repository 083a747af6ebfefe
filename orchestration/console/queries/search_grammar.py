"""The grammar of a search: `NOT`, `AND`, `OR`, parentheses and terms, as a tree and as text.

    any  := all ("OR" all)*
    all  := part (["AND"] part)*
    part := ("NOT" | "-") part | "(" any ")" | name:"(" any ")" | term
    term := word | "quoted words" | name:value | name:"quoted value"

It knows nothing of what terms mean. Trees are in one form: no group stands in a group of its kind,
has one part or has a part twice. So what is printed reads back as the same tree.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

LONGEST = 500  # characters of a query
DEEPEST = 20  # groups and negations within each other
OPERATORS = ("AND", "OR", "NOT")
TOKEN = re.compile(
    r"""(?P<open>\() | (?P<close>\)) | (?P<minus>-(?=[^\s)]))
    | (?P<bare>[A-Za-z_]+):(?=[\s()]|$)
    | (?:(?P<name>[A-Za-z_]+):)?(?:"(?P<quoted>[^"]*)"|(?P<plain>[^\s()"]+))""",
    re.VERBOSE,
)
# a value that would be read otherwise, unless it is quoted
SPECIAL = re.compile(r"[\s()]")


class Unreadable(ValueError):
    """A query that breaks the grammar; its text says what is wrong and where."""


@dataclass(frozen=True)
class Term:
    """A word, which has no name, or a qualifier and its value."""

    name: str
    value: str


@dataclass(frozen=True)
class Not:
    """The tasks that its part does not match."""

    part: "Node"


@dataclass(frozen=True)
class AllOf:
    """The tasks that every part matches; use `all_of`, which normalizes trees."""

    parts: tuple["Node", ...]


@dataclass(frozen=True)
class AnyOf:
    """The tasks that at least one part matches; use `any_of`."""

    parts: tuple["Node", ...]


Node = Term | Not | AllOf | AnyOf


def all_of(parts: Sequence[Node]) -> Node | None:
    """Return the conjunction of the parts; None without parts, which matches all tasks."""
    return _group(AllOf, parts)


def any_of(parts: Sequence[Node]) -> Node | None:
    """Return the disjunction of the parts."""
    return _group(AnyOf, parts)


def _group(kind: type[AllOf] | type[AnyOf], parts: Sequence[Node]) -> Node | None:
    flat: list[Node] = []
    for part in parts:
        flat += part.parts if isinstance(part, kind) else [part]
    once = tuple(dict.fromkeys(flat))
    return kind(once) if once[1:] else once[0] if once else None


def parts_of(tree: Node | None) -> Sequence[Node]:
    """Return the parts that must all hold."""
    if tree is None:
        return ()
    return tree.parts if isinstance(tree, AllOf) else (tree,)


def is_named(part: Node, *names: str) -> bool:
    """Return whether a part is a term of one of these names."""
    return isinstance(part, Term) and part.name in names


def terms(tree: Node | None) -> Iterator[Term]:
    """Yield every term of a tree, from left to right."""
    match tree:
        case Term():
            yield tree
        case Not():
            yield from terms(tree.part)
        case AllOf() | AnyOf():
            for part in tree.parts:
                yield from terms(part)


def replaced(tree: Node, change: Callable[[Term], Node]) -> Node:
    """Return a tree with each term changed."""
    match tree:
        case Term():
            return change(tree)
        case Not():
            return Not(replaced(tree.part, change))
        case AllOf():
            return _never_empty(all_of([replaced(part, change) for part in tree.parts]))
        case AnyOf():
            return _never_empty(any_of([replaced(part, change) for part in tree.parts]))


def _never_empty(tree: Node | None) -> Node:
    if tree is None:
        raise ValueError("a group without parts")
    return tree


def wording(tree: Node | None) -> str:
    """Return a tree in one line, as a user would type it."""
    match tree:
        case None:
            return ""
        case Term():
            return _term(tree)
        case Not():
            return f"-{_enclosed(tree.part, AllOf, AnyOf)}"
        case AllOf():
            return " ".join(_enclosed(part, AnyOf) for part in tree.parts)
        case AnyOf():
            return " OR ".join(wording(part) for part in tree.parts)


def _enclosed(part: Node, *kinds: type[Node]) -> str:
    text = wording(part)
    return f"({text})" if isinstance(part, kinds) else text


def _term(term: Term) -> str:
    value = term.value
    quoted = SPECIAL.search(value) is not None
    if not term.name:
        quoted = quoted or ":" in value or value.startswith("-") or value in OPERATORS
    text = f'"{value}"' if quoted or not value else value
    return f"{term.name}:{text}" if term.name else text


def with_term(tree: Node | None, name: str, value: str) -> str:
    """Return a search with another value of a qualifier at its top; without it if that is empty."""
    parts = [part for part in parts_of(tree) if not is_named(part, name)]
    return wording(all_of([*parts, *([Term(name, value)] if value else [])]))


def without(tree: Node | None, part: Node) -> str:
    """Return a search without a part."""
    return wording(all_of([other for other in parts_of(tree) if other != part]))


def rest(tree: Node | None, names: Iterable[str]) -> str:
    """Return the part of a search that a form with fields of these names does not show."""
    return wording(all_of([part for part in parts_of(tree) if not is_named(part, *names)]))


class _Token(NamedTuple):
    """A piece of a query: its kind ("(", ")", "-", an operator, "term" or "name"), text and place."""

    kind: str
    text: str
    at: int
    term: Term | None = None

    @property
    def where(self) -> str:
        return f"“{self.text}” (character {self.at + 1})"


def parse(query: str) -> Node | None:
    """Return the tree of a query; None for an empty one. Raises `Unreadable`."""
    if len(query) > LONGEST:
        raise Unreadable(f"The search is too long: at most {LONGEST} characters are allowed.")
    if query.count('"') % 2:
        last = query.rindex('"') + 1
        raise Unreadable(f"A quotation mark is not closed (character {last}).")
    parser = _Parser(list(_tokens(query)))
    tree = parser.any_of("", 0)
    if left := parser.next:
        raise Unreadable(f"{left.where} has no “(” before it.")
    return tree


def _tokens(query: str) -> Iterator[_Token]:
    for match in TOKEN.finditer(query):
        text, at = match[0], match.start()
        if match["open"] or match["close"] or match["minus"]:
            yield _Token(text, text, at)
        elif match["bare"]:
            yield _Token("name", text, at, Term(match["bare"].lower(), ""))
        elif text in OPERATORS:
            yield _Token(text, text, at)
        else:
            name = (match["name"] or "").lower()
            value = match["plain"] if match["quoted"] is None else match["quoted"]
            if name in {"http", "https"}:  # an address that was pasted
                name, value = "", f"{match['name']}:{value}"
            if name or value:
                yield _Token("term", text, at, Term(name, value))


class _Parser:
    """Reads tokens from left to right; `name` is what words in a group of a qualifier belong to."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def next(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self, *kinds: str) -> _Token | None:
        token = self.next
        if token is None or token.kind not in kinds:
            return None
        self._at += 1
        return token

    def any_of(self, name: str, depth: int) -> Node | None:
        """Read alternatives; None if there is nothing to read."""
        alternatives = [self._all_of(name, depth)]
        while token := self._take("OR"):
            alternatives.append(self._all_of(name, depth))
            for part, place in zip(alternatives[-2:], ("before", "after"), strict=True):
                if part is None:
                    raise Unreadable(f"{token.where} has nothing {place} it.")
        return any_of([part for part in alternatives if part is not None])

    def _all_of(self, name: str, depth: int) -> Node | None:
        parts: list[Node] = []
        while part := self._part(name, depth):
            parts.append(part)
            if token := self._take("AND"):
                following = self._part(name, depth)
                if following is None:
                    raise Unreadable(f"{token.where} has nothing after it.")
                parts.append(following)
        if token := self._take("AND"):
            raise Unreadable(f"{token.where} has nothing before it.")
        return all_of(parts)

    def _part(self, name: str, depth: int) -> Node | None:
        if depth > DEEPEST:
            raise Unreadable(
                f"The search is nested too deeply: at most {DEEPEST} groups within each other."
            )
        if token := self._take("-", "NOT"):
            part = self._part(name, depth + 1)
            if part is None:
                raise Unreadable(f"{token.where} has nothing after it.")
            return Not(part)
        if token := self._take("("):
            return self._group(token, name, depth)
        if token := self._take("name"):
            following = self.next
            if following and following.kind == "(" and following.at == token.at + len(token.text):
                self._at += 1
                return self._group(following, _name_of(token), depth)
            return token.term
        if token := self._take("term"):
            term = token.term
            return Term(name, term.value) if term and name and not term.name else term
        return None

    def _group(self, opened: _Token, name: str, depth: int) -> Node:
        tree = self.any_of(name, depth + 1)
        if self._take(")") is None:
            raise Unreadable(f"{opened.where} is not closed.")
        if tree is None:
            raise Unreadable(f"{opened.where} has nothing in it.")
        return tree


def _name_of(token: _Token) -> str:
    return token.term.name if token.term else ""
