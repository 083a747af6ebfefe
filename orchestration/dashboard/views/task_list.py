"""The list of tasks: searched, paged, kept as views."""

import base64
import binascii
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.views.decorators.http import require_safe

from ...models.operation import Act
from ...queries import saved_views, task_filters
from ...queries import task_list as queries_task_list
from ...queries.search_query import BACKGROUND, Search, read, wording
from ..forms.search import Narrowing
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


@require_safe
@requires(OPERATE)
@from_replica
def task_list(request: HttpRequest) -> HttpResponse:
    """List tasks, newest first, narrowed by what the address says."""
    user = user_of(request)
    search = read(request.GET.dict(), personal=user.has_perm(SEE_PERSONAL))
    if "narrow" in request.GET and not search.problems:
        # what the form sent, as one line: an address to keep and to pass on
        return HttpResponseRedirect(f"{reverse('ops:tasks')}{_asking(search.text)}", status=303)
    place = _place(request.GET)
    problems = [
        *search.problems,
        *([] if place else ["This address does not name a page of the list. Search again."]),
    ]
    page = queries_task_list.tasks(search.filters, place) if place and not problems else None
    form = Narrowing(initial=search.given)
    context: dict[str, Any] = {
        "now": page.now if page else None,
        "search": search,
        "problems": problems,
        "form": form,
        "rest": wording(
            search.filters.words,
            {name: value for name, value in search.given.items() if name not in form.fields},
        ),
        "chips": _chips(search),
        "standard_views": STANDARD_VIEWS,
        "left_out": task_filters.left_out(search.filters) if page else [],
        "all_of_them": _asking(wording(search.filters.words, {**search.given, "with": BACKGROUND})),
        "acts": Act.choices,
        "page": page,
        "place": place,
        "query": _asking(search.text).removeprefix("?"),
        "views": saved_views.saved_views(user, search.text, personal=search.filters.personal),
        "may": {
            "bulk": user.has_perm(BULK),
            "share": user.has_perm(SHARE),
            "resubmit": user.has_perm(RESUBMIT),
        },
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
        status=200 if page else 400,
    )


def _asking(text: str) -> str:
    if not text:
        return ""
    query = QueryDict(mutable=True)
    query["q"] = text
    return f"?{query.urlencode()}"


def _chips(search: Search) -> list[tuple[str, str]]:
    """Return each part of a search with the address of the list without it."""
    words, given = search.filters.words, search.given
    without = [(wording([word], {}), [w for w in words if w != word], given) for word in words]
    without += [
        (
            wording([], {name: value}),
            list(words),
            {n: v for n, v in given.items() if n != name},
        )
        for name, value in given.items()
    ]
    address = reverse("ops:tasks")
    return [(text, f"{address}{_asking(wording(words, given))}") for text, words, given in without]


def _place(asked: QueryDict) -> queries_task_list.Place | None:
    """Return the page that an address names; None if it names none."""
    try:
        return queries_task_list.Place(
            older=_id(asked, "older"),
            newer=_id(asked, "newer"),
            last="last" in asked,
            shown=_unpacked(asked.get("shown", "")),
        )
    except (ValueError, binascii.Error):
        return None


def _id(asked: QueryDict, name: str) -> UUID | None:
    text = asked.get(name)
    return UUID(str(text)) if text else None


def _packed(ids: Sequence[UUID]) -> str:
    """Return ids as a short text: the address of a poll names the rows that it is about."""
    return base64.urlsafe_b64encode(b"".join(id_.bytes for id_ in ids)).decode().rstrip("=")


def _unpacked(text: str) -> list[UUID]:
    octets = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    return [UUID(bytes=octets[start : start + 16]) for start in range(0, len(octets), 16)]
