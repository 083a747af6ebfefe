"""GET /metrics: for a Prometheus with a token, or a signed-in member of staff."""

from collections.abc import Callable, Iterable

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client.registry import Collector

from ...applications.tokens import READ_METRICS, authenticate
from ..metrics.exposition import expose
from .permissions import OPERATE

SCHEME = "Bearer "


@require_safe
def metrics(
    request: HttpRequest, others: Callable[[], Iterable[Collector]] = tuple
) -> HttpResponse:
    """Return the metrics; 401 without a good token, 403 with one that is not good for them.

    `others` returns collectors of the project's own.
    """
    status = _refusal(request)
    if status:
        explanation = f"Show a token that is good for {READ_METRICS}: Authorization: Bearer sas_…\n"
        response = HttpResponse(
            explanation, status=status, content_type="text/plain; charset=utf-8"
        )
        if status == 401:
            response["WWW-Authenticate"] = 'Bearer realm="metrics"'
        return response
    body, content_type = expose(request.headers.get("Accept", ""), others())
    return HttpResponse(body, content_type=content_type)


def _refusal(request: HttpRequest) -> int:
    """Return the status by which a request is refused, or 0."""
    shown = request.headers.get("Authorization", "")
    if shown.startswith(SCHEME):
        caller = authenticate(shown.removeprefix(SCHEME).strip())
        if caller is None:
            return 401
        return 0 if READ_METRICS in caller.scopes else 403
    if not request.user.is_authenticated:
        return 401
    return 0 if request.user.has_perm(OPERATE) else 403
