"""Resolve plain words of a search through applications, and suggest other searches."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from uuid import UUID

from django.db.models import Q

from ... import registry
from ...models import Incident
from ...states import TaskState
from ...workflows.workflow import Found
from . import search_grammar
from .search_grammar import AllOf, AnyOf, Node, Not, Term, Unreadable, wording
from .search_query import Fix, Query, Search
from .search_terms import TROUBLE, Filters, as_uuid
from .task_filters import matching

FEW = 5  # suggestions
SHORTEST = 4  # characters of a word that is compared with names
MONEY = re.compile(
    r"""(?P<sign>[€£$¥]?) (?P<whole>\d{1,3}(?:,\d{3})+|\d{1,12})
    (?:[.,](?P<part>\d{1,2}))? (?P<after>[€£$¥]?)""",
    re.VERBOSE,
)


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """A search with what its words mean; `more` are the words that mean more than is listed."""

    query: Query
    more: Sequence[str] = ()


def resolved(search: Search) -> Resolved:
    """Resolve the words of a search through applications: a few queries each."""
    words = list(dict.fromkeys(search.words))
    if not words or search.problems:
        return Resolved(query=search.query)
    labels: dict[str, list[str]] = defaultdict(list)
    references: dict[str, list[str]] = defaultdict(list)
    more = set()
    groups = dict.fromkeys(_together(search.tree))
    answers = (
        workflow.find(group, search.personal)
        for workflow in registry.workflows.values()
        for group in groups
    )
    for word, matches in chain.from_iterable(answer.items() for answer in answers):
        labels[word] += matches.labels
        references[word] += matches.references
        if matches.more:
            more.add(word)
    known = {
        word: Found(labels=labels[word], references=references[word])
        for word in words
        if labels[word] or references[word]
    }
    ways = tuple(_with(filters, known) for filters in search.query.alternatives)
    return Resolved(query=Query(alternatives=ways), more=sorted(more))


def _together(tree: Node | None) -> Iterable[tuple[str, ...]]:
    """Yield the words that must all be true of a task; those that need not be come alone."""
    match tree:
        case Term(name="", value=word):
            yield (word,)
        case Not():
            yield from _together(tree.part)
        case AllOf() | AnyOf():
            words = [part for part in tree.parts if isinstance(part, Term) and not part.name]
            if isinstance(tree, AllOf) and words:
                yield tuple(dict.fromkeys(word.value for word in words))
            for part in tree.parts:
                if isinstance(tree, AnyOf) or part not in words:
                    yield from _together(part)


def _with(filters: Filters, known: dict[str, Found]) -> Filters:
    others = tuple(_with(other, known) for other in filters.without)
    return replace(filters, matches=known, without=others) if known else filters


def named(search: Search, query: Query) -> UUID | None:
    """Return the task that a search of words names in full, if it names exactly one.

    Several words name what an application finds by each of them: they are one number, typed apart.
    """
    words = [part.value for part in search.narrowing if isinstance(part, Term) and not part.name]
    if not words or len(words) != len(search.narrowing) or len(query.alternatives) != 1:
        return None
    (filters,) = query.alternatives
    exactly = Q()
    for word in words:
        exactly &= _in_full(word, filters.matches.get(word, Found()))
    hits = matching(filters).filter(exactly).values_list("id", flat=True)[:2]
    return hits[0] if len(hits) == 1 else None


def _in_full(word: str, matches: Found) -> Q:
    exactly = Q(reference__in=[word, *matches.references])
    exactly |= Q(label__in=[word, word.upper(), *matches.labels], label__gt="")
    if known := as_uuid(word):
        exactly |= Q(id=known)
    return exactly


def suggestions(search: Search, *, nothing_found: bool) -> list[Fix]:
    """Return suggestions for plain words: names as qualifiers, operators in capitals.

    Where `nothing_found`, also names that are like a word.
    """
    if search.problems or search.tree is None or not search.words:
        return []
    tree, fixes = search.tree, []
    for word in dict.fromkeys(search.words):
        for name, value in _names_like(word, near=nothing_found):
            suggestion = Term(name, value)
            text = wording(search_grammar.replaced(tree, _change(Term("", word), suggestion)))
            fixes.append(Fix(text=wording(suggestion), query=text))
    return [*_in_capitals(search), *fixes][:FEW]


def _change(old: Term, new: Term) -> Callable[[Term], Node]:
    return lambda term: new if term == old else term


def _names_like(word: str, *, near: bool) -> Iterable[tuple[str, str]]:
    if amount := _amount(word):
        yield "value", amount
    known = _names()
    lower = word.lower()
    exact = [(name, value) for name, values in known.items() for value in values if value == lower]
    if not exact and (code := _error_code(word)):
        exact = [("error", code)]
    yield from exact
    if not exact and near and len(word) >= SHORTEST:
        for name, values in known.items():
            if value := registry.nearest(lower, values):
                yield name, value


def _amount(word: str) -> str:
    """Return the amount that a word is, as `value:` takes it: it has decimals, or a currency's sign."""
    match = MONEY.fullmatch(word)
    if match is None or not (match["part"] or match["sign"] or match["after"]):
        return ""
    whole = match["whole"].replace(",", "")
    return f"{whole}.{match['part']}" if match["part"] else whole


def _names() -> dict[str, list[str]]:
    workflows = registry.workflows.values()
    return {
        "step": list(dict.fromkeys(step.name for workflow in workflows for step in workflow.steps)),
        "state": list(TaskState.values),
        "is": list(TROUBLE),
        "agent": list(registry.agents),
        "workflow": list(registry.workflows),
    }


def _error_code(word: str) -> str:
    """Return the error code that a word is: one that an incident has."""
    codes = Incident.objects.filter(code=word.lower()).values_list("code", flat=True)
    return codes.first() or ""


def _in_capitals(search: Search) -> Iterable[Fix]:
    small = {word for word in search.words if word in {"and", "or", "not"}}
    if not small:
        return
    query = re.sub(r"\b(and|or|not)\b", lambda match: match[0].upper(), search.text)
    try:
        search_grammar.parse(query)
    except Unreadable:
        return
    yield Fix(text=query, query=query)
