"""The declared workflows, drawn and listed, with the tasks at each step."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from ..charts.workflow_graph import graph
from ..queries import workflows as queries_workflows
from .live import live
from .permissions import HOLD, OPERATE, START, requires, user_of


@require_safe
@requires(OPERATE)
def workflows(request: HttpRequest) -> HttpResponse:
    """Show each registered workflow."""
    seen = queries_workflows.workflows_page()
    context = {
        "now": seen.now,
        "seen": seen,
        "drawn": [(shape, graph(shape)) for shape in seen.workflows],
        "may_hold": user_of(request).has_perm(HOLD),
        "may_start": user_of(request).has_perm(START),
        "section": "workflows",
        "heading": "Workflows",
    }
    return live(request, "ops/live.html", "ops/_workflows.html", context)
