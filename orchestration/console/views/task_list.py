"""The list of tasks: searched, sorted, paged, kept as views."""

import base64
import binascii
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.views.decorators.http import require_safe

from ... import conf
from ...database.time_limit import TooSlow, time_limit
from ...models.operation import Act
from ..forms.search import Narrowing
from ..queries import saved_views, search_grammar, task_filters, task_order, word_meanings
from ..queries import task_list as queries_task_list
from ..queries.search_query import BACKGROUND, COLUMNS, SORT, WITH, Fix, Search, columns_text, read
from ..queries.task_order import Row
from ..queries.word_meanings import Resolved
from ..task_table import columns_of, columns_to_choose
from .live import live
from .permissions import BULK, OPERATE, RESUBMIT, SEE_PERSONAL, SHARE, requires, user_of
from .replica import from_replica

# what everybody looks for, as queries
STANDARD_VIEWS = [
    ("state:error", "In error"),
    ("is:retrying", "Retrying"),
    ("is:overdue", "Overdue"),
    ("is:held", "Held"),
    ("state:undoing", "Undoing"),
]
TOO_SLOW = (
    f"The search was stopped after {conf.SEARCH_TIMEOUT_S:.0f} s. Narrow it: by a state, a time such as "
    "after:2d, or a reference. Or drop the order."
)


@require_safe
@requires(OPERATE)
@from_replica
def task_list(request: HttpRequest) -> HttpResponse:
    """List tasks, newest first or sorted, filtered by the query string."""
    personal = user_of(request).has_perm(SEE_PERSONAL)
    search = read(request.GET.dict(), personal=personal)
    problems = list(search.problems)
    try:
        with time_limit(conf.SEARCH_TIMEOUT_S, DEFAULT_DB_ALIAS):
            resolved = word_meanings.resolved(search)
        if not problems and (to := _elsewhere(request, search, resolved)):
            return HttpResponseRedirect(to, status=303)
        place = _place(request.GET, search)
        if place is None:
            problems.append("This address does not name a page of the list. Search again.")
        page = _page(search, resolved, place) if place and not problems else None
    except TooSlow:
        return _shown(request, search, Resolved(query=search.query), [TOO_SLOW], status=503)
    return _shown(request, search, resolved, problems, page=page, place=place)


def asking(text: str) -> str:
    """Return the part of an address that asks for a search."""
    if not text:
        return ""
    query = QueryDict(mutable=True)
    query["q"] = text
    return f"?{query.urlencode()}"


def _elsewhere(request: HttpRequest, search: Search, resolved: Resolved) -> str:
    """Return where a form leads: one line, as an address to keep and to pass on; or the task it names."""
    text = search.text
    if "choose" in request.GET:
        columns = request.GET.getlist("column")
        value = columns_text(columns, personal=search.personal)
        text = search_grammar.with_term(search.tree, COLUMNS, value)
    elif "open" in request.GET and (task := word_meanings.named(search, resolved.query)):
        return reverse("ops:task", args=[task])
    elif not request.GET.keys() & {"narrow", "open"}:
        return ""
    return f"{reverse('ops:tasks')}{asking(text)}"


def _page(
    search: Search, resolved: Resolved, place: queries_task_list.Place
) -> queries_task_list.TaskPage:
    return queries_task_list.tasks(
        resolved.query, place, order=search.order, personal=search.personal
    )


def _choices(
    request: HttpRequest, search: Search, page: queries_task_list.TaskPage | None
) -> dict[str, Any]:
    """Return what can be done with a list: its order, columns, saved views and bulk operations."""
    user = user_of(request)
    return {
        "all_of_them": asking(search_grammar.with_term(search.tree, WITH, BACKGROUND)),
        "acts": Act.choices,
        "query": asking(search.text).removeprefix("?"),
        "unsorted": page is not None and page.sorted_by != search.order,
        "most_sorted": f"{task_order.MOST:,}",
        "newest_first": asking(search_grammar.with_term(search.tree, SORT, "")),
        "columns": columns_of(search, page),
        "to_choose": columns_to_choose(search),
        "without_columns": search_grammar.with_term(search.tree, COLUMNS, ""),
        "columns_text": columns_text(search.columns, personal=search.personal),
        "views": saved_views.saved_views(user, search.text, personal=search.personal),
        "may": {
            "bulk": user.has_perm(BULK),
            "share": user.has_perm(SHARE),
            "resubmit": user.has_perm(RESUBMIT),
        },
    }


def _shown(
    request: HttpRequest,
    search: Search,
    resolved: Resolved,
    problems: Sequence[str],
    *,
    page: queries_task_list.TaskPage | None = None,
    place: queries_task_list.Place | None = None,
    status: int = 400,
) -> HttpResponse:
    form = Narrowing(initial=search.field_values)
    narrowing = [*map(search_grammar.wording, search.narrowing)]
    context: dict[str, Any] = {
        "now": page.now if page else None,
        "search": search,
        "narrowed": " ".join(narrowing),
        "problems": problems,
        "fixes": _links(search.fixes),
        "suggestions": _links(word_meanings.suggestions(search, nothing_found=not page.rows))
        if page
        else [],
        "more_meant": resolved.more,
        "form": form,
        "rest": search_grammar.rest(search.tree, form.fields),
        "chips": _chips(search),
        "standard_views": STANDARD_VIEWS,
        "left_out": task_filters.left_out(resolved.query) if page else [],
        "page": page,
        "place": place,
        **_choices(request, search, page),
        "section": "tasks",
        "heading": "Tasks",
    }
    keep = {"shown": _packed([row.task.id for row in page.rows])} if page and page.rows else {}
    return live(
        request,
        "ops/tasks.html",
        "ops/_tasks.html",
        context,
        keep=keep,
        status=200 if page else status,
    )


def _links(fixes: Sequence[Fix]) -> list[tuple[str, str]]:
    """Return what may have been meant, each with the address of the list that has it."""
    return [(fix.text, f"{reverse('ops:tasks')}{asking(fix.query)}") for fix in fixes]


def _chips(search: Search) -> list[tuple[str, str]]:
    """Return each part of a search with the address of the list without it."""
    address = reverse("ops:tasks")
    return [
        (
            search_grammar.wording(part),
            f"{address}{asking(search_grammar.without(search.tree, part))}",
        )
        for part in search.narrowing
    ]


def _place(asked: QueryDict, search: Search) -> queries_task_list.Place | None:
    """Return the page that an address names; None if it names none."""
    try:
        return queries_task_list.Place(
            older=_row(asked, "older", search),
            newer=_row(asked, "newer", search),
            last="last" in asked,
            shown=_unpacked(asked.get("shown", "")),
        )
    except (ValueError, binascii.Error):
        return None


def _row(asked: QueryDict, name: str, search: Search) -> Row | None:
    text = asked.get(name)
    return Row.read(str(text), search.order) if text else None


def _packed(ids: Sequence[UUID]) -> str:
    """Return ids as a short text: the address of a poll names the rows that it is about."""
    return base64.urlsafe_b64encode(b"".join(id_.bytes for id_ in ids)).decode().rstrip("=")


def _unpacked(text: str) -> list[UUID]:
    octets = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    return [UUID(bytes=octets[start : start + 16]) for start in range(0, len(octets), 16)]
