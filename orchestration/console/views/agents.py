"""The agents: gates, requests in flight, waiting steps, and the actions of operators on them."""

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from ... import conf
from ...database import clock
from ...messaging import queues
from ...transitions.gates import probe_now
from ..forms.actions import ReasonForm
from ..queries import agents as queries_agents
from ..queries import causes, conflicts
from ..queries.causes import Cause
from .live import live
from .permissions import HOLD, OPERATE, requires, user_of
from .responses import COMMAND, act_page, conflict, done, or_404


@require_safe
@requires(OPERATE)
def agents(request: HttpRequest) -> HttpResponse:
    """Show every agent's gate, load, times and holds."""
    seen = queries_agents.agents_page(conf.WORKER_DEAD_AFTER_S)
    context = {
        "now": seen.now,
        "seen": seen,
        "rows": _with_causes(seen.rows),
        "may_hold": user_of(request).has_perm(HOLD),
        "section": "agents",
        "heading": "Agents",
    }
    return live(request, "ops/live.html", "ops/_agents.html", context)


def _with_causes(
    rows: Sequence[queries_agents.AgentRow],
) -> Sequence[tuple[queries_agents.AgentRow, Cause | None]]:
    """Return agents, each with the tasks that wait because it is blocked."""
    open_causes = causes.causes({row.name: row.view for row in rows})
    stopped = {cause.name: cause for cause in open_causes if cause.kind == causes.Kind.AGENT}
    return [(row, stopped.get(row.name)) for row in rows]


@require_http_methods(["GET", "HEAD", "POST"])
@requires(OPERATE, HOLD)
def probe(request: HttpRequest, agent: str) -> HttpResponse:
    """Probe an agent now: end its pause, or the wait of its open circuit breaker."""
    # Postgres takes no NUL, which an address may have
    row = or_404(None if "\0" in agent else queries_agents.agent_row(agent))
    gate, waiting = row
    now, back = clock.database_now(), (reverse("ops:agents"), "Back to the agents")
    form = ReasonForm(request.POST if request.method == "POST" else None)
    waits = any(at is not None and at > now for at in (gate.probe_at, gate.paused_until))
    if waits and form.is_valid():
        refusal = probe_now(
            agent, actor=user_of(request).get_username(), reason=form.cleaned_data["reason"]
        )
        if refusal is None:
            queues.ring_after_commit(queues.SCHEDULER)
            return done(request, f"{agent} will be probed now.", back[0])
        waits = False
    if not waits:
        return conflict(
            request,
            what=f"the gate of {agent}",
            first=conflicts.last_probe_request(agent) if request.method == "POST" else None,
            advice=f"{agent} waits neither for a probe nor for the end of a pause.",
            back=back,
            section="agents",
        )
    return act_page(
        request,
        "ops/probe.html",
        form,
        heading=f"Probe {agent} now",
        back=back,
        section="agents",
        gate=gate,
        waiting=waiting,
        now=now,
        command=f'{COMMAND} probe {agent} --reason "…"',
    )
