"""What people do about an alert: take care of it, or close it where only they can."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST

from .. import alerts, queries
from ..act_forms import Reason
from .access import ACKNOWLEDGE, OPERATE, requires, user_of
from .outcome import COMMAND, conflict, done


@require_http_methods(["GET", "HEAD", "POST"])
@requires(OPERATE, ACKNOWLEDGE)
def settle(request: HttpRequest, alert_id: int) -> HttpResponse:
    """Close the alert of an effect that showed late, once a person has settled it."""
    alert = queries.alert_by_id(alert_id)
    task = alerts.late_effect_of(alert.fingerprint) if alert else None
    if alert is None or task is None:
        raise Http404
    back = reverse("ops:task", args=[task])
    form = Reason(request.POST if request.method == "POST" else None)
    reason = form.cleaned_data["reason"] if form.is_valid() else ""
    by = user_of(request).get_username()
    if reason and alerts.settle(alert.id, by=by, reason=reason):
        return done(request, "The alert is closed.", back)
    if reason or alert.closed_at:
        return conflict(
            request,
            what=f"the alert “{alert.title}”",
            first=queries.who_closed(alert),
            advice="It is closed by now.",
            back=(back, "Back to the task"),
        )
    context = {
        "alert": alert,
        "form": form,
        "back": back,
        "command": f'{COMMAND} settle {alert.id} --reason "…"',
        "section": "tasks",
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "ops/settle.html", context, status=status)


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
