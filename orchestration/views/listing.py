"""The list of tasks."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from .. import queries
from ..forms import TaskFilters
from .access import OPERATE, requires
from .live import live


@require_safe
@requires(OPERATE)
def task_list(request: HttpRequest) -> HttpResponse:
    """List tasks, newest first, narrowed by what the address says."""
    form = TaskFilters(request.GET)
    filters = form.filters()
    page = queries.tasks(filters) if filters else None
    narrowing = request.GET.copy()
    for name in ("seen", "before"):
        narrowing.pop(name, None)
    context = {
        "now": page.now if page else None,
        "form": form,
        "page": page,
        "filters": filters,
        "narrowing": narrowing.urlencode(),
        "section": "tasks",
    }
    return live(request, "ops/tasks.html", "ops/_tasks.html", context, status=200 if page else 400)
