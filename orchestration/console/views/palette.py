"""Search of the command palette, beyond the current page."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from ..queries.palette import Hit, hits
from .permissions import OPERATE, SEE_PERSONAL, requires, user_of
from .task_list import asking


@require_safe
@requires(OPERATE)
def palette(request: HttpRequest) -> HttpResponse:
    """Return the matches of a text, as JSON for the palette's list."""
    personal = user_of(request).has_perm(SEE_PERSONAL)
    matches = hits(request.GET.get("q", "")[:100], personal=personal)
    rows = [
        {"kind": hit.kind, "name": hit.name, "note": hit.note, "address": _address(hit)}
        for hit in matches
    ]
    response = JsonResponse({"found": rows})
    response.headers["Cache-Control"] = "no-store"
    return response


def _address(hit: Hit) -> str:
    address = reverse(f"ops:{hit.route}", args=[hit.key] if hit.key is not None else [])
    return f"{address}#{hit.place}" if hit.place else f"{address}{asking(hit.query)}"
