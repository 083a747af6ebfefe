"""The page to begin with: what needs attention, what waits, who is at work."""

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from ..charts.svg import drawing, rows
from ..charts.trends import charts, latency, step_rows
from ..queries import overview as overview_queries
from ..queries.trends import RANGES
from .live import live
from .permissions import ACKNOWLEDGE, OPERATE, RESUBMIT, is_redacted, requires, user_of
from .replica import from_replica


@require_safe
@requires(OPERATE)
@from_replica
def overview(request: HttpRequest) -> HttpResponse:
    """Show what needs attention, what waits, and who is at work."""
    redacted, user = is_redacted(request), user_of(request)
    seen = overview_queries.overview(request.GET.get("range", ""), personal=not redacted)
    context = {
        "now": seen.now,
        "seen": seen,
        "redacted": redacted,
        "charts": [(chart, drawing(chart), rows(chart)) for chart in charts(seen.trends)],
        "steps": step_rows(seen.trends),
        "latency": latency(seen.trends),
        "ranges": RANGES.values(),
        "may": {"resubmit": user.has_perm(RESUBMIT), "acknowledge": user.has_perm(ACKNOWLEDGE)},
        "zone": timezone.get_current_timezone_name(),
        "section": "overview",
        "heading": "Overview",
    }
    return live(request, "ops/live.html", "ops/_overview.html", context)
