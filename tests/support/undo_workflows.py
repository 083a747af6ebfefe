"""Small workflows that differ in how they are undone, and what people do to their tasks."""

from orchestration import registry
from orchestration.models import Alert, Step, Task
from orchestration.models.fields import DatabaseNow
from orchestration.payloads.placeholders import key, result
from orchestration.transitions.resubmit import resubmit
from orchestration.transitions.undo import undo
from orchestration.workflows.step import Step as StepDeclaration
from orchestration.workflows.workflow import Workflow
from tests.support.engine import staff, sweep
from tests.support.operators import LEADER


def declared(name, *, after=(), undo_request=None, irreversible=""):
    return StepDeclaration(
        name=name, agent="greeter", action="greet", after=after, irreversible=irreversible,
        undo=None if irreversible else "take_back",
        undo_request={"key": key(name)} if undo_request is None else undo_request,
    )  # fmt: skip


SHAPES = {
    "by_key": [declared("room")],
    "by_result": [declared("room", undo_request={"id": result("room", "id")})],
    "by_whole_result": [declared("room", undo_request=result("room"))],
    "forever": [declared("room", irreversible="it is in the post")],
    "side_by_side": [declared("room"), declared("meal")],
    "in_turn": [declared("room"), declared("meal", after=["room"])],
}
WORKFLOWS = {name: Workflow(name=name, steps=steps) for name, steps in SHAPES.items()}


def declare(monkeypatch):
    """Have these workflows, and workers for every agent, while a test runs."""
    for name, workflow in WORKFLOWS.items():
        monkeypatch.setitem(registry.workflows, name, workflow)
    staff()


def act(step, **options):
    return resubmit(step.id, attempt=step.attempt, actor="olga", reason="mended", **options)


def ask_undo(task, **options):
    return undo(task.id, actor="olga", reason="the customer cancelled", **options)


def state(task):
    return Task.objects.get(id=task.id).state


def undo_step(task, name="room"):
    return Step.objects.filter(task=task, direction="undo", name=name).first()


def open_alerts():
    return set(Alert.objects.filter(closed_at=None).values_list("fingerprint", flat=True))


def expire(task):
    Step.objects.filter(task=task, process_state="processing").update(complete_by=DatabaseNow())
    sweep(LEADER)
    Step.objects.filter(run_after__isnull=False).update(run_after=None)
