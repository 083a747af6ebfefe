"""Holding and releasing, at every level: a task, a step of a workflow, an agent, everything."""

from dataclasses import dataclass
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.utils.text import capfirst
from django.views.decorators.http import require_http_methods

from ... import registry
from ...database import clock
from ...decisions.progress import Refusal
from ...messaging import queues
from ...models import Hold, Task
from ...models.hold import HoldCause
from ...transitions.holds import hold as hold_target
from ...transitions.holds import release as release_hold
from ...waiting import holds
from ..forms.actions import ReasonForm
from ..queries import conflicts
from ..queries import task as queries_task
from .in_place import act_form
from .permissions import HOLD, OPERATE, requires, user_of
from .responses import COMMAND, conflict, done, or_404, to_task


@dataclass(frozen=True, kw_only=True)
class Target:
    """The target of a hold; without names, everything."""

    task: Task | None = None
    agent: str = ""
    workflow: str = ""
    step: str = ""

    @property
    def words(self) -> str:
        """Return what it is, in words."""
        if self.task is not None:
            return str(self.task)
        if self.agent:
            return f"agent {self.agent}"
        if self.step:
            return f"step {self.step} of every {self.workflow}"
        return "everything"

    @property
    def option(self) -> str:
        """Return how a command names it."""
        if self.task is not None:
            return f"--task {self.task.id}"
        if self.agent:
            return f"--agent {self.agent}"
        return f"--step {self.workflow}/{self.step}" if self.step else "--everything"

    @property
    def back(self) -> tuple[str, str]:
        """Return where one comes from."""
        if self.task is not None:
            return to_task(self.task)
        return reverse("ops:agents"), "Back to the agents"

    @property
    def section(self) -> str:
        """Return the page of the navigation that it belongs to."""
        return "agents" if self.task is None else "tasks"


@require_http_methods(["GET", "HEAD", "POST"])
@requires(OPERATE, HOLD)
def hold(request: HttpRequest) -> HttpResponse:
    """Keep a target's steps from being sent, from the next claim on."""
    target = _target(request.GET)
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        made = hold_target(
            actor=user_of(request).get_username(),
            reason=form.cleaned_data["reason"],
            agent=target.agent,
            workflow=target.workflow,
            step=target.step,
            task=target.task.id if target.task else None,
        )
        if isinstance(made, Hold):
            return done(request, f"{capfirst(target.words)} is on hold.", target.back[0])
        return _held_already(request, target)
    context = {
        "heading": f"Hold {target.words}",
        "target": target,
        "form": form,
        "back": target.back,
        "command": f'{COMMAND} hold {target.option} --reason "…"',
        "section": target.section,
    }
    sent = request.method == "POST"
    return act_form(request, "ops/hold.html", "ops/_hold.html", context, sent=sent)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(OPERATE, HOLD)
def release(request: HttpRequest, hold_id: int) -> HttpResponse:
    """End a hold that was made by hand."""
    held = or_404(holds.hold_by_id(hold_id))
    target = Target(task=held.task, agent=held.agent, workflow=held.workflow, step=held.step)
    if held.cause != HoldCause.HAND or held.until is not None:
        return _not_held(request, target, held)
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        refusal = release_hold(
            held.id, actor=user_of(request).get_username(), reason=form.cleaned_data["reason"]
        )
        if refusal is Refusal.NOT_HELD:
            return _not_held(request, target, holds.hold_by_id(hold_id) or held)
        queues.ring_after_commit(queues.SCHEDULER)
        return done(request, f"{capfirst(target.words)} was released.", target.back[0])
    context = {
        "heading": f"Release {target.words}",
        "target": target,
        "held": held,
        "form": form,
        "back": target.back,
        "command": f'{COMMAND} release {held.id} --reason "…"',
        "section": target.section,
        "now": clock.database_now(),
    }
    sent = request.method == "POST"
    return act_form(request, "ops/release.html", "ops/_release.html", context, sent=sent)


def _target(asked: QueryDict) -> Target:
    """Return the target that an address names; 404 unless it is exactly one that exists."""
    named = [name for name in ("task", "agent", "step", "everything") if asked.get(name)]
    if len(named) != 1:
        raise Http404
    word = str(asked[named[0]])
    match named[0]:
        case "task":
            return Target(task=_task(word))
        case "agent" if word in registry.agents:
            return Target(agent=word)
        case "step":
            name, _, step = word.partition("/")
            workflow = registry.workflows.get(name)
            if workflow and step in {declared.name for declared in workflow.steps}:
                return Target(workflow=name, step=step)
        case "everything":
            return Target()
    raise Http404


def _task(word: str) -> Task:
    try:
        task_id = UUID(word)
    except ValueError as error:
        raise Http404 from error
    return or_404(queries_task.task_by_id(task_id))


def _held_already(request: HttpRequest, target: Target) -> HttpResponse:
    held = holds.hold_in_force(
        agent=target.agent,
        workflow=target.workflow,
        step=target.step,
        task=target.task.id if target.task else None,
    )
    return conflict(
        request,
        what=target.words,
        first=conflicts.start_of_hold(held) if held else None,
        advice="It stays on hold until an operator releases it.",
        back=target.back,
        section=target.section,
    )


def _not_held(request: HttpRequest, target: Target, held: Hold) -> HttpResponse:
    advice = "Your action changed nothing."
    if held.until is None:
        advice = f"The engine set this hold: {held.reason}. It ends automatically."
    return conflict(
        request,
        what=target.words,
        first=conflicts.end_of_hold(held),
        advice=advice,
        back=target.back,
        section=target.section,
    )
