"""The audit: every act of people, newest first."""

from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.views.decorators.http import require_safe

from ..forms.search import PAGING, AuditSearch
from ..queries import audit_log
from ..queries.audit_sources import Cursor
from .live import live
from .permissions import OPERATE, SEE_PERSONAL, requires, user_of
from .replica import from_replica


@require_safe
@requires(OPERATE)
@from_replica
def audit(request: HttpRequest) -> HttpResponse:
    """List who did what, when and why, filtered by the query string."""
    form = AuditSearch(request.GET)
    filters = form.filters(personal=user_of(request).has_perm(SEE_PERSONAL))
    try:
        places = {name: Cursor.read(request.GET[name]) for name in PAGING if request.GET.get(name)}
    except ValueError:
        places, filters = {}, None
        form.add_error(None, "This address does not name a page of the list.")
    page = audit_log.trail(filters, **places) if filters else None
    context: dict[str, Any] = {
        "now": page.now if page else None,
        "form": form,
        "page": page,
        "query": _without_paging(request.GET),
        "section": "audit",
        "heading": "Audit",
    }
    first = page and page.lines and not places.keys() & {"older", "newer"}
    keep = {"top": str(places.get("top") or page.lines[0].place)} if page and first else {}
    return live(
        request,
        "ops/audit.html",
        "ops/_audit.html",
        context,
        keep=keep,
        status=200 if page else 400,
    )


def _without_paging(asked: QueryDict) -> str:
    query = QueryDict(mutable=True)
    for name, value in asked.items():
        if value and name not in (*PAGING, "seen"):
            query[name] = str(value)
    return query.urlencode()
