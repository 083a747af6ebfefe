"""The system page: queues, processes, the leader, backlogs, the last audit."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from ..queries import system as system_queries
from .live import live
from .permissions import OPERATE, requires


@require_safe
@requires(OPERATE)
def system(request: HttpRequest) -> HttpResponse:
    """Show what is at work and what is not, with or without Redis."""
    seen = system_queries.system()
    context = {"now": seen.now, "seen": seen, "section": "system", "heading": "System"}
    return live(request, "ops/live.html", "ops/_system.html", context)
