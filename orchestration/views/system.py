"""The machinery: queues, processes, the leader, what lies, the last audit."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from .. import queries
from .access import OPERATE, requires
from .live import live


@require_safe
@requires(OPERATE)
def system(request: HttpRequest) -> HttpResponse:
    """Show what is at work and what is not, with or without Redis."""
    seen = queries.system()
    context = {"now": seen.now, "seen": seen, "section": "system"}
    return live(request, "ops/system.html", "ops/_system.html", context)
