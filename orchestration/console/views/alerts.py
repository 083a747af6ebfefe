"""Acknowledge alerts, and close those that only a user can close."""

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST

from ...alerting import alerts
from ...incidents import actions as incidents
from ..forms.actions import ReasonForm
from ..queries import conflicts
from .permissions import ACKNOWLEDGE, OPERATE, requires, user_of
from .responses import COMMAND, act_page, conflict, done, or_404


@require_http_methods(["GET", "HEAD", "POST"])
@requires(OPERATE, ACKNOWLEDGE)
def settle(request: HttpRequest, alert_id: int) -> HttpResponse:
    """Close the alert of an effect that showed late, once a person has settled it."""
    alert = or_404(conflicts.alert_by_id(alert_id))
    task = or_404(alerts.late_effect_of(alert.fingerprint))
    back = (reverse("ops:task", args=[task]), "Back to the task")
    form = ReasonForm(request.POST if request.method == "POST" else None)
    reason = form.cleaned_data["reason"] if form.is_valid() else ""
    by = user_of(request).get_username()
    if reason and alerts.close_late_effect(alert.id, by=by, reason=reason):
        return done(request, "The alert was closed.", back[0])
    if reason or alert.closed_at:
        return conflict(
            request,
            what=f"the alert “{alert.title}”",
            first=conflicts.closing_of_late_effect(alert),
            advice="The alert is closed.",
            back=back,
        )
    return act_page(
        request,
        "ops/settle.html",
        form,
        heading="Close an alert",
        back=back,
        alert=alert,
        command=f'{COMMAND} settle {alert.id} --reason "…"',
    )


@require_POST
@requires(OPERATE, ACKNOWLEDGE)
def acknowledge(request: HttpRequest, alert_id: int) -> HttpResponse:
    """Acknowledge an open alert, and the incident that it is about."""
    alert = or_404(conflicts.alert_by_id(alert_id))
    back = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts=None):
        back = reverse("ops:overview")
    if incidents.acknowledge_alerts([alert.id], by=user_of(request).get_username()):
        return done(request, "You acknowledged the alert.", back)
    alert = conflicts.alert_by_id(alert_id) or alert
    return conflict(
        request,
        what=f"the alert “{alert.title}”",
        first=conflicts.acknowledgement(alert),
        advice="The alert is closed." if alert.closed_at else "The alert is already acknowledged.",
        back=(back, "Back"),
    )
