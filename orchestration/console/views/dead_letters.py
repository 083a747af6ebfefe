"""Dead letters: their list, and what can be done about them: try again, or close."""

import re
from urllib.parse import urlencode

from django import forms
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.utils.text import capfirst
from django.views.decorators.http import require_http_methods, require_safe

from ...database import sql
from ...database.capped_counts import CAP
from ...database.lane import State
from ...dead_letters import actions
from ...dead_letters import listing as dead_letters
from ...dead_letters.actions import DeadLetterFilter, Kind
from ..forms.actions import OptionalReasonForm, ReasonForm
from ..queries import conflicts
from .live import live
from .permissions import OPERATE, REQUEUE, SEE_PERSONAL, requires, user_of
from .responses import act_page, conflict, done

NUMBER = re.compile("[0-9]{1,18}")
BADGES = {  # all others wait for a person
    State.WAITING: ("warning", "waits"),
    State.UNKNOWN: ("warning", "unknown workflow"),
    State.CLOSED: ("", "closed"),
}


@require_safe
@requires(OPERATE)
def letters(request: HttpRequest) -> HttpResponse:
    """List dead letters, newest first, filtered by the query string."""
    filters = filters_from(request.GET)
    user = user_of(request)
    page = dead_letters.letters(filters, personal=user.has_perm(SEE_PERSONAL))
    context = {
        "now": page.now,
        "page": page,
        "rows": [(row, BADGES.get(row.state, ("error", row.state.value))) for row in page.rows],
        "filters": filters,
        "narrowing": _narrowing(filters),
        "kinds": [("", "any"), *Kind.choices],
        "states": [("", "open"), *State.choices],
        "may": {"requeue": user.has_perm(REQUEUE)},
        "section": "dead_letters",
        "heading": "Dead letters",
    }
    return live(request, "ops/dead_letters.html", "ops/_dead_letters.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(OPERATE, REQUEUE)
def retry_letters(request: HttpRequest) -> HttpResponse:
    """Retry dead letters: one, or all that match the query string."""
    return _act(request, "retry", OptionalReasonForm)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(OPERATE, REQUEUE)
def close_letters(request: HttpRequest) -> HttpResponse:
    """Decide that dead letters are not processed: one, or all that an address names."""
    return _act(request, "close", ReasonForm)


def _act(request: HttpRequest, act: str, form_class: type[forms.Form]) -> HttpResponse:
    """Ask for the reason, or act; what is gone meanwhile is a conflict."""
    filters = filters_from(request.GET)
    address = f"{reverse('ops:dead_letters')}?{request.GET.get('back', '')}".removesuffix("?")
    back = (address, "Back to the dead letters")
    total = actions.count(filters, CAP + 1)
    form = form_class(request.POST if request.method == "POST" else None)
    if total and form.is_valid():
        by, reason = user_of(request).get_username(), form.cleaned_data["reason"]
        if act == "retry":
            count = actions.retry(filters, by=by, reason=reason)
        else:
            count = actions.close(filters, by=by, reason=reason)
        if count:
            are = "dead letter is" if count == 1 else "dead letters are"
            return done(
                request,
                f"{count} {are} {'being retried' if act == 'retry' else 'closed'}.",
                address,
            )
        total = 0
    if not total:
        return conflict(
            request,
            what="the dead letter" if filters.id else "the dead letters",
            first=conflicts.last_requeue(filters) if filters.id else None,
            advice="It may have been processed meanwhile, or another submission has its reference.",
            back=back,
            section="dead_letters",
        )
    page = dead_letters.letters(filters, personal=user_of(request).has_perm(SEE_PERSONAL))
    return act_page(
        request,
        "ops/dead_letters_act.html",
        form,
        heading=f"{capfirst(act)} dead letters",
        back=back,
        section="dead_letters",
        act=act,
        total=total,
        letter=page.rows[0] if filters.id and page.rows else None,
        filters=filters,
        command=_command(act, filters),
    )


def filters_from(asked: QueryDict) -> DeadLetterFilter:
    """Return the filters of a query string; an invalid id must never mean all."""
    number, kind = asked.get("id"), asked.get("kind", "")
    if number is not None and not (kind and NUMBER.fullmatch(number)):
        raise Http404
    return DeadLetterFilter(
        kind=sql.storable(kind),
        name=sql.storable(asked.get("name", "")),
        state=sql.storable(asked.get("state", "")),
        id=None if number is None else int(number),
    )


def _narrowing(filters: DeadLetterFilter) -> str:
    named = {"kind": filters.kind, "state": filters.state, "name": filters.name}
    return urlencode({name: value for name, value in named.items() if value})


def _command(act: str, filters: DeadLetterFilter) -> str:
    options = [f"--{name} {value}" for name in ("kind", "name", "state")
               if (value := getattr(filters, name))]  # fmt: skip
    which = [str(filters.id)] if filters.id else [] if options else ["--all"]
    return " ".join(["manage.py deadletters", act, *which, *options, '--reason "…"'])
