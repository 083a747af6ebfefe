"""The page to begin with: what needs attention, what waits, who is at work."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from .. import queries
from .access import OPERATE, requires
from .live import live


@require_safe
@requires(OPERATE)
def overview(request: HttpRequest) -> HttpResponse:
    """Show what needs attention, what waits, and who is at work."""
    seen = queries.overview()
    context = {"now": seen.now, "seen": seen, "section": "overview"}
    return live(request, "ops/overview.html", "ops/_overview.html", context)
