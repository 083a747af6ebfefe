"""A search of the list of tasks, as typed or as sent by a form.

`step:hello (error:timeout OR attempts:>2) -is:held "A-1 17"`: all must hold, unless it says otherwise; a
plain word is a reference, a label, an id or a contact. The address of the list takes the same as
`q=…`, as fields of the qualifiers' names, or as both.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ... import registry
from . import search_grammar, task_columns
from .search_grammar import AllOf, AnyOf, Node, Not, Term, all_of, is_named, parts_of, wording
from .search_terms import ONE_ONLY, QUALIFIERS, Filters, InvalidValue, curly, intersect, understood
from .task_columns import NEWEST_FIRST, Order

BACKGROUND = "background"
MOST = 16  # alternatives that a search may come to
MANY_TERMS = 60
SORT, COLUMNS, WITH = "sort", "columns", "with"
DIRECTIVES = (SORT, COLUMNS, WITH)  # about the whole list, not about one task
NAMES = (*QUALIFIERS, *DIRECTIVES)
NONE_OF = "it applies to the whole list: put it outside of NOT, OR and parentheses"


@dataclass(frozen=True, kw_only=True)
class Fix:
    """A suggestion: the text of a term, and the search that contains it."""

    text: str
    query: str


@dataclass(frozen=True, kw_only=True)
class Query:
    """Which tasks a search means: those that one of `alternatives` finds."""

    alternatives: tuple[Filters, ...]

    @property
    def foreground(self) -> bool:
        """Return whether tasks that only serve others are left out: nothing but words was asked."""
        return any(filters.foreground for filters in self.alternatives)


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search as it was understood: its tree, what it means, how to list it, and what is wrong.

    `given` are the qualifiers that stand alone at the top, for a form. As long as something is wrong, `text`
    is what was typed, and `fixes` are what may have been meant.
    """

    tree: Node | None
    query: Query
    order: Order
    columns: tuple[str, ...]
    field_values: Mapping[str, str]
    text: str
    problems: tuple[str, ...]
    fixes: tuple[Fix, ...] = ()
    personal: bool = False

    @property
    def words(self) -> list[str]:
        """Return its plain words."""
        return [term.value for term in search_grammar.terms(self.tree) if not term.name]

    @property
    def narrowing(self) -> list[Node]:
        """Return its parts that select tasks."""
        return [part for part in parts_of(self.tree) if not is_named(part, SORT, COLUMNS)]


def read(asked: Mapping[str, str], *, personal: bool) -> Search:
    """Parse the parameters of an address; without `personal`, contacts cannot be searched."""
    typed = asked.get("q", "")
    try:
        tree = all_of([*parts_of(_apart(search_grammar.parse(typed))), *_fields(asked)])
    except search_grammar.Unreadable as problem:
        return _unreadable(typed, str(problem).replace("\0", "?"), personal=personal)
    reading = _Reading(personal=personal)
    tree = reading.whole(tree)
    alternatives = () if reading.problems else reading.alternatives(tree)
    return Search(
        tree=tree,
        query=Query(alternatives=alternatives),
        order=reading.order,
        columns=reading.columns,
        field_values=_field_values(tree),
        text=typed if reading.problems else wording(tree),  # what was typed is there to mend
        problems=tuple(reading.problems),
        fixes=tuple(reading.fixes),
        personal=personal,
    )


def _apart(tree: Node | None) -> Node | None:
    """Return a tree with the directives beside its alternatives: `a OR b sort:value` sorts both."""
    if not isinstance(tree, AnyOf):
        return tree
    directives: list[Node] = []
    ways: list[Node] = []
    for part in tree.parts:
        own = [node for node in parts_of(part) if not is_named(node, *DIRECTIVES)]
        if own and isinstance(part, AllOf):
            directives += [node for node in part.parts if node not in own]
        ways.append(all_of(own) or part)
    return all_of([search_grammar.any_of(ways) or tree, *directives])


def _field_values(tree: Node | None) -> dict[str, str]:
    return {
        term.name: term.value for term in parts_of(tree) if isinstance(term, Term) and term.name
    }


def _fields(asked: Mapping[str, str]) -> Iterable[Term]:
    for name in NAMES:
        if value := asked.get(name, "").strip():
            yield Term(name, value)


def _unreadable(typed: str, problem: str, *, personal: bool) -> Search:
    return Search(
        tree=None,
        query=Query(alternatives=()),
        order=NEWEST_FIRST,
        columns=task_columns.usual(personal=personal),
        field_values={},
        text=typed,
        problems=(problem,),
        personal=personal,
    )


class _Reading:
    """Understands a tree term by term, and collects what is wrong with it."""

    def __init__(self, *, personal: bool) -> None:
        self._personal = personal
        self._meanings: dict[Term, Filters] = {}
        self.problems: list[str] = []
        self.fixes: list[Fix] = []
        self.order = NEWEST_FIRST
        self.columns = task_columns.usual(personal=personal)

    def whole(self, tree: Node | None) -> Node | None:
        """Return a tree with all values in full; what is not understood stays."""
        if len(list(search_grammar.terms(tree))) > MANY_TERMS:
            self.problems.append(
                f"The search has too many parts: at most {MANY_TERMS} are allowed."
            )
            return tree
        self._repeated(tree, top=True)
        parts: list[Node] = []
        for part in parts_of(tree):
            if isinstance(part, Term) and part.name in DIRECTIVES:
                parts.append(self._directive(part, tree))
            else:
                parts.append(search_grammar.replaced(part, lambda term: self._term(term, tree)))
        return all_of(parts)

    def alternatives(self, tree: Node | None) -> tuple[Filters, ...]:
        """Return the alternative filters of a tree without problems."""
        parts = [part for part in parts_of(tree) if not is_named(part, *DIRECTIVES)]
        ways = self._ways(all_of(parts))
        words_only = not any(term.name for part in parts for term in search_grammar.terms(part))
        foreground = words_only and len(parts) == len(
            [part for part in parts_of(tree) if not is_named(part, SORT, COLUMNS)]
        )
        return tuple(replace(way, foreground=foreground) for way in ways)

    def _ways(self, node: Node | None) -> list[Filters]:
        """Return the ways to be found by a node; none if no task can be."""
        everything = Filters(personal=self._personal)
        match node:
            case Term():
                return [self._meanings[node]]
            case Not():
                left_out = tuple(self._ways(node.part))
                return [] if everything in left_out else [replace(everything, without=left_out)]
            case AnyOf():
                return self._few([way for part in node.parts for way in self._ways(part)])
            case AllOf():
                ways = [everything]
                for part in node.parts:
                    more = self._ways(part)
                    merged = (intersect(way, other) for way in ways for other in more)
                    ways = self._few([way for way in merged if way is not None])
                return ways
        return [everything]

    def _few(self, ways: list[Filters]) -> list[Filters]:
        if len(ways) > MOST and not self.problems:
            self.problems.append(
                f"The search has too many alternatives: the ORs come to more than {MOST} combinations. "
                "Use fewer, or search in two steps."
            )
        return ways[:MOST]

    def _term(self, term: Term, tree: Node | None) -> Term:
        """Understand a term; return it with its value in full."""
        if not term.name:
            if "\0" in term.value or '"' in term.value:
                self.problems.append("A word cannot contain a null character or a quotation mark.")
            self._meanings[term] = Filters(personal=self._personal, words=(term.value,))
            return term
        if term.name in DIRECTIVES:
            self._wrong(term, InvalidValue(NONE_OF))
            return term
        if term.name not in QUALIFIERS:
            return self._unknown(term, tree)
        try:
            value, meaning = understood(term.name, term.value, personal=self._personal)
        except InvalidValue as problem:
            self._wrong(term, problem)
            self._fix(term, Term(term.name, problem.near) if problem.near else None, tree)
            return term
        whole = Term(term.name, value)
        self._meanings[whole] = meaning
        return whole

    def _unknown(self, term: Term, tree: Node | None) -> Term:
        near = curly(registry.suggest(term.name, NAMES))
        self.problems.append(_ended(f"Unknown filter “{term.name}:”{near}"))
        name = registry.nearest(term.name, NAMES)
        self._fix(term, Term(name, term.value) if name and term.value else None, tree)
        return term

    def _directive(self, term: Term, tree: Node | None) -> Term:
        try:
            match term.name:
                case "sort":
                    self.order = task_columns.order_of(term.value, personal=self._personal)
                    return Term(SORT, self.order.text)
                case "columns":
                    self.columns = task_columns.read(term.value, personal=self._personal)
                    return Term(COLUMNS, ",".join(self.columns))
                case _:
                    return Term(WITH, _kind_of_tasks(term.value))
        except InvalidValue as problem:
            self._wrong(term, problem)
            self._fix(term, Term(term.name, problem.near) if problem.near else None, tree)
        return term

    def _repeated(self, node: Node | None, *, top: bool = False) -> None:
        """Note where two values are asked for and a task can have one."""
        values: dict[str, str] = {}
        for part in parts_of(node):
            match part:
                case Term() if part.name in (*ONE_ONLY, *(DIRECTIVES if top else ())):
                    first = values.setdefault(part.name, part.value)
                    if first != part.value:
                        either = " Join them by OR." if part.name in ONE_ONLY else ""
                        self.problems.append(
                            f"“{part.name}:” is given twice: “{first}” and “{part.value}”.{either}"
                        )
                case Not():
                    self._repeated(part.part)
                case AnyOf():
                    for alternative in part.parts:
                        self._repeated(alternative)

    def _wrong(self, term: Term, problem: InvalidValue) -> None:
        name, value = term.name, term.value
        what = f"“{name}:{value}”:" if value else f"“{name}:” has no value;"
        self.problems.append(_ended(f"{what} {problem}".replace("\0", "?")))

    def _fix(self, term: Term, suggestion: Term | None, tree: Node | None) -> None:
        if suggestion is None or tree is None:
            return
        query = search_grammar.replaced(tree, lambda other: suggestion if other == term else other)
        self.fixes.append(Fix(text=wording(suggestion), query=wording(query)))


def _kind_of_tasks(text: str) -> str:
    if not text or not BACKGROUND.startswith(text.lower()):
        raise InvalidValue(f"unknown kind of tasks; known: {BACKGROUND}", BACKGROUND)
    return BACKGROUND


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith("?") else f"{sentence}."


def columns_text(columns: Sequence[str], *, personal: bool) -> str:
    """Return the value of `columns:` for a choice; nothing for the usual one."""
    chosen = tuple(columns)
    return "" if chosen == task_columns.usual(personal=personal) else ",".join(chosen)
