"""Taking care of an alert: the others see by whom."""

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from .. import alerts, queries
from .access import ACKNOWLEDGE, OPERATE, requires, user_of
from .outcome import conflict, done


@require_POST
@requires(OPERATE, ACKNOWLEDGE)
def acknowledge(request: HttpRequest, alert_id: int) -> HttpResponse:
    """Record that somebody takes care of an open alert."""
    alert = queries.alert_by_id(alert_id)
    if alert is None:
        raise Http404
    back = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts=None):
        back = reverse("ops:overview")
    if alerts.acknowledge([alert.id], by=user_of(request).get_username()):
        return done(request, "You take care of it, and the others see that.", back)
    alert = queries.alert_by_id(alert_id) or alert
    return conflict(
        request,
        what=f"the alert “{alert.title}”",
        first=queries.who_acknowledged(alert),
        advice="It is closed by now." if alert.closed_at else "It is taken care of already.",
        back=(back, "Back"),
    )
