"""The decisions that steps wait for: those of one's own roles first."""

from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from ...database import sql
from ..queries import decisions as queries
from .live import live
from .permissions import CORRECT, OPERATE, SEE_PERSONAL, requires, user_of


@require_safe
@requires(OPERATE)
def decisions(request: HttpRequest) -> HttpResponse:
    """List what waits for a person, due first; a role is a group of the same name."""
    user, role = user_of(request), sql.storable(request.GET.get("role", ""))
    personal = user.has_perm(SEE_PERSONAL)
    mine = set(user.groups.values_list("name", flat=True))
    page = queries.decisions(
        role=role, mine=mine, after=_after(request.GET.get("after", "")), personal=personal
    )
    known = queries.roles()
    context = {
        "now": page.now,
        "page": page,
        "role": role,
        "mine": sorted(mine & set(known)),
        "roles": known if not role or role in known else [*known, role],
        "narrowing": urlencode({"role": role}) if role else "",
        "later": "after" in request.GET,
        "personal": personal,
        "may": {"correct": user.has_perm(CORRECT)},
        "section": "decisions",
        "heading": "Decisions",
    }
    return live(request, "ops/decisions.html", "ops/_decisions.html", context)


def _after(text: str) -> queries.After | None:
    try:
        return queries.After.read(text) if text else None
    except (ValueError, OverflowError):
        raise Http404 from None
