"""The columns of the list of tasks as its page has them: their heads sort, and a form chooses them."""

from dataclasses import dataclass

from django.http import QueryDict
from django.urls import reverse

from .queries import search_grammar
from .queries.search_query import SORT, Search
from .queries.task_columns import COLUMNS, NEWEST_FIRST, Order, allowed
from .queries.task_list import TaskPage


@dataclass(frozen=True, kw_only=True)
class Head:
    """The head of a column: `address` sorts by it, the other way round if it is sorted by already."""

    name: str
    title: str
    number: bool
    sorted: str  # as `aria-sort` says it; empty if the list is not sorted by it
    address: str


def columns_of(search: Search, page: TaskPage | None) -> list[Head]:
    """Return the heads of the columns that a search shows."""
    return [_head(name, search, page) for name in search.columns]


def columns_to_choose(search: Search) -> list[tuple[str, str, bool]]:
    """Return the columns that may be shown: name, title and whether it is shown."""
    return [
        (name, COLUMNS[name].title, name in search.columns)
        for name in allowed(personal=search.personal)
    ]


def _head(name: str, search: Search, page: TaskPage | None) -> Head:
    column = COLUMNS[name]
    here = page.sorted_by if page and page.sorted_by.column == name else None
    order = Order(column=name, descending=not here.descending if here else column.descending)
    asked = QueryDict(mutable=True)
    asked["q"] = search_grammar.with_term(
        search.tree, SORT, "" if order == NEWEST_FIRST else order.text
    )
    sorted_as = ("descending" if here.descending else "ascending") if here else ""
    return Head(
        name=name,
        title=column.title,
        number=column.number,
        sorted=sorted_as,
        address=f"{reverse('ops:tasks')}?{asked.urlencode()}",
    )
