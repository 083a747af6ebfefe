"""What the command palette finds beyond the page that it is opened on."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from ...queries.palette import Hit, hits
from .permissions import OPERATE, SEE_PERSONAL, requires, user_of
from .task_list import asking


@require_safe
@requires(OPERATE)
def palette(request: HttpRequest) -> HttpResponse:
    """Return what a text may mean, as JSON for the palette's list."""
    personal = user_of(request).has_perm(SEE_PERSONAL)
    found = hits(request.GET.get("q", "")[:100], personal=personal)
    rows = [
        {"kind": one.kind, "name": one.name, "note": one.note, "address": _address(one)}
        for one in found
    ]
    response = JsonResponse({"found": rows})
    response.headers["Cache-Control"] = "no-store"
    return response


def _address(one: Hit) -> str:
    address = reverse(f"ops:{one.route}", args=[one.key] if one.key is not None else [])
    return f"{address}#{one.place}" if one.place else f"{address}{asking(one.query)}"
