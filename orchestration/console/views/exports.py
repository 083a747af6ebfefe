"""Exports: the rows of a filtered list, as a file."""

from collections.abc import Callable
from typing import cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import DEFAULT_DB_ALIAS
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from ... import conf
from ...database.time_limit import TooSlow, time_limit
from ...models import Operation
from ...models.export import ExportFormat
from ...models.operation import ItemState
from ..export_file import sent
from ..forms.incidents import Finder
from ..forms.search import AuditSearch
from ..queries import exports, search_query, task_export, word_meanings
from ..queries.exports import Listing
from ..queries.operations import operation_by_id
from . import dead_letters, operations, schedules
from .dead_letters import NUMBER
from .permissions import OPERATE, SEE_PERSONAL, requires, user_of
from .responses import or_404
from .task_list import TOO_SLOW


class Unclear(Exception):
    """The filters of a list are invalid; the message says why."""


@require_POST
@requires(OPERATE)
def export(request: HttpRequest, name: str) -> HttpResponse:
    """Send the rows of a list as a file; the history has who did, and which."""
    read, page_of = or_404(LISTS.get(name))
    user, asked = user_of(request), QueryDict(request.POST.get("narrowing", ""))
    page = page_of(asked)
    form = request.POST.get("format", "")
    if form not in ExportFormat.values:
        return _refused(request, page, asked, "Choose the format of the file.")
    try:
        listing = read(asked, user, personal=user.has_perm(SEE_PERSONAL))
        records = exports.begin(listing, actor=user.get_username(), form=ExportFormat(form))
    except TooSlow:
        return _refused(request, page, asked, TOO_SLOW)
    except Unclear as unclear:
        return _refused(request, page, asked, *unclear.args)
    # a stream is an answer like any other, though not of this class
    file = sent(
        records, listing.columns, ExportFormat(form), f"{name}-{timezone.now():%Y%m%d-%H%M%S}"
    )
    return cast("HttpResponse", file)


def _refused(request: HttpRequest, page: str, asked: QueryDict, *problems: str) -> HttpResponse:
    for problem in problems:
        messages.error(request, f"Nothing was exported. {problem}")
    return HttpResponseRedirect(f"{page}?{asked.urlencode()}".removesuffix("?"), status=303)


def _tasks(asked: QueryDict, _user: User, *, personal: bool) -> Listing:
    search = search_query.read({"q": asked.get("q", "")}, personal=personal)
    if search.problems:
        raise Unclear(*search.problems)
    with time_limit(conf.SEARCH_TIMEOUT_S, DEFAULT_DB_ALIAS):
        return task_export.of_tasks(search, word_meanings.resolved(search))


def _incidents(asked: QueryDict, user: User, *, personal: bool) -> Listing:
    filters = Finder(asked, user=user).filters()
    if filters is None:
        raise Unclear("The filter is not valid.")
    return exports.of_incidents(filters, asked.urlencode(), personal=personal)


def _operations(asked: QueryDict, _user: User, *, personal: bool) -> Listing:
    filters = operations.filters_of(asked)
    return exports.of_operations(filters, asked.urlencode(), personal=personal)


def _schedules(asked: QueryDict, _user: User, *, personal: bool) -> Listing:
    filters = schedules.filters_of(asked)
    return exports.of_schedules(filters, asked.urlencode(), personal=personal)


def _items(asked: QueryDict, _user: User, *, personal: bool) -> Listing:
    operation, state = _operation(asked), asked.get("state", "")
    state = state if state in ItemState.values else ""
    return exports.of_items(operation, state, asked.urlencode(), personal=personal)


def _operation(asked: QueryDict) -> Operation:
    number = asked.get("operation", "")
    return or_404(operation_by_id(int(number)) if NUMBER.fullmatch(number) else None)


def _acts(asked: QueryDict, _user: User, *, personal: bool) -> Listing:
    form = AuditSearch(asked)
    filters = form.filters(personal=personal)
    if filters is None:
        raise Unclear(*form.non_field_errors() or ["The filter is not valid."])
    return exports.of_acts(filters, asked.urlencode())


def _dead_letters(asked: QueryDict, _user: User, *, personal: bool) -> Listing:
    filters = dead_letters.filters_from(asked)
    return exports.of_dead_letters(filters, asked.urlencode(), personal=personal)


def _list(name: str) -> Callable[[QueryDict], str]:
    return lambda _asked: reverse(f"ops:{name}")


# how each list is read from what narrows it, and the address of its page
LISTS: dict[str, tuple[Callable[..., Listing], Callable[[QueryDict], str]]] = {
    "tasks": (_tasks, _list("tasks")),
    "incidents": (_incidents, _list("incidents")),
    "operations": (_operations, _list("operations")),
    "schedules": (_schedules, _list("schedules")),
    "items": (_items, lambda asked: reverse("ops:operation", args=[_operation(asked).id])),
    "audit": (_acts, _list("audit")),
    "dead-letters": (_dead_letters, _list("dead_letters")),
}
