"""The page to begin with: what needs attention, what waits, who is at work."""

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from .. import queries
from ..queries.trends import RANGES
from .access import OPERATE, RESUBMIT, is_veiled, requires, user_of
from .drawing import drawing, rows
from .live import live
from .sparkline import sparkline
from .trend_charts import charts, latency, step_rows


@require_safe
@requires(OPERATE)
def overview(request: HttpRequest) -> HttpResponse:
    """Show what needs attention, what waits, and who is at work."""
    veiled = is_veiled(request)
    seen = queries.overview(request.GET.get("range", ""), personal=not veiled)
    context = {
        "now": seen.now,
        "seen": seen,
        "incident_rows": [(row, sparkline(row.trend, seen.now)) for row in seen.incidents],
        "veiled": veiled,
        "charts": [(one, drawing(one), rows(one)) for one in charts(seen.trends)],
        "steps": step_rows(seen.trends),
        "latency": latency(seen.trends),
        "ranges": RANGES.values(),
        "may": {"resubmit": user_of(request).has_perm(RESUBMIT)},
        "zone": timezone.get_current_timezone_name(),
        "section": "overview",
    }
    return live(request, "ops/overview.html", "ops/_overview.html", context)
