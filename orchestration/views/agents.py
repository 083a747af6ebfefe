"""The agents: their gates, who is inside, who waits, and what people do about them."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from .. import conf, queries
from ..act_forms import Reason
from ..models import Hold
from ..redaction import Veil
from ..transitions.gates import probe_now
from .access import HOLD, OPERATE, requires, user_of, veil_for
from .live import live
from .outcome import COMMAND, conflict, done, ring_when_committed


@require_safe
@requires(OPERATE)
def agents(request: HttpRequest) -> HttpResponse:
    """Show every agent's gate, load, times and holds."""
    seen = queries.agents_page(conf.ALIVE)
    context = {
        "now": seen.now,
        "seen": seen,
        "holds": [(hold, _veil(request, hold)) for hold in seen.holds],
        "lately": [(hold, _veil(request, hold)) for hold in seen.lately],
        "may_hold": user_of(request).has_perm(HOLD),
        "section": "agents",
    }
    return live(request, "ops/agents.html", "ops/_agents.html", context)


def _veil(request: HttpRequest, hold: Hold) -> Veil | None:
    """Return what hides the task's words in what people wrote about holding it."""
    return veil_for(request, hold.task) if hold.task else None


@require_http_methods(["GET", "HEAD", "POST"])
@requires(OPERATE, HOLD)
def probe(request: HttpRequest, agent: str) -> HttpResponse:
    """Have an open circuit breaker send its next probe at once."""
    found = queries.agent_row(agent)
    if found is None:
        raise Http404
    gate, waiting = found
    now = queries.database_now()
    form = Reason(request.POST if request.method == "POST" else None)
    waits = gate.probe_at is not None and gate.probe_at > now
    if waits and form.is_valid():
        refusal = probe_now(
            agent, actor=user_of(request).get_username(), reason=form.cleaned_data["reason"]
        )
        if refusal is None:
            ring_when_committed()
            return done(request, f"The next probe of {agent} goes at once.", reverse("ops:agents"))
        waits = False
    if not waits:
        return conflict(
            request,
            what=f"the gate of {agent}",
            first=queries.who_probed(agent) if request.method == "POST" else None,
            advice=f"The circuit breaker of {agent} is not open, or its probe is due already.",
            back=(reverse("ops:agents"), "Back to the agents"),
            section="agents",
        )
    context = {
        "gate": gate,
        "waiting": waiting,
        "form": form,
        "command": f'{COMMAND} probe {agent} --reason "…"',
        "now": now,
        "section": "agents",
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "ops/probe.html", context, status=status)
