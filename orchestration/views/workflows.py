"""The workflows as they are declared, drawn and listed, and where tasks stand in them."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from .. import queries
from .access import HOLD, OPERATE, requires, user_of
from .graph import graph
from .live import live


@require_safe
@requires(OPERATE)
def workflows(request: HttpRequest) -> HttpResponse:
    """Show each registered workflow."""
    seen = queries.workflows_page()
    context = {
        "now": seen.now,
        "seen": seen,
        "drawn": [(one, graph(one)) for one in seen.workflows],
        "may_hold": user_of(request).has_perm(HOLD),
        "section": "workflows",
    }
    return live(request, "ops/workflows.html", "ops/_workflows.html", context)
