"""`manage.py tasks`: shows tasks, and runs operators' actions."""

import getpass
import json
import time
from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from orchestration import registry
from orchestration.agents import payload_schemas
from orchestration.alerting import alerts
from orchestration.applications.task_status import progress, set_aside
from orchestration.decisions.fairness import PRIORITIES
from orchestration.decisions.progress import Refusal
from orchestration.management.step_words import OF_WAIT, with_words
from orchestration.messaging import queues
from orchestration.models import Alert, Hold, Operation, Step, Task
from orchestration.operations import single, undo_preview
from orchestration.people.person import Person
from orchestration.states import LIVE_TASK_STATES, Direction, StepState, TaskState
from orchestration.transitions.gates import probe_now
from orchestration.transitions.holds import hold, release
from orchestration.transitions.priority import prioritize

EXAMPLES = """
examples:
  manage.py tasks list --state error
  manage.py tasks show 0199…
  manage.py tasks show greet/42                       by workflow and reference, as in each act on a task
  manage.py tasks wait greet 42                       until it has come to its end; fails if it is in error
  manage.py tasks preview 0199…                       what an undo would do
  manage.py tasks undo 0199… --reason "they changed their mind"
  manage.py tasks resubmit 4711 --reason "credential renewed"
  manage.py tasks resubmit 4711 --reason "other card" --request '{"to": "…", …}'
  manage.py tasks resubmit 4711 --reason "the service found nothing" --nothing-done
  manage.py tasks done 4711 --reason "refunded by phone" --result '{"id": "re_1"}'
  manage.py tasks complete greet/42 review --result '{"ok": true}' --reason "they called"
  manage.py tasks complete greet/42 review --refused unclear --reason "no answer"
  manage.py tasks hold --agent hotels --reason "they move house"
  manage.py tasks release 12 --reason "they have moved"
  manage.py tasks prioritize 0199… --priority 5 --reason "they called"
  manage.py tasks probe hotels --reason "they say it is back"
  manage.py tasks settle 7 --reason "refunded by phone"  close the alert of a late effect
"""

A_TASK = "its id, or workflow/reference"
LOOK = 0.05  # seconds between two looks


def task_id(text: str) -> UUID:
    """Return the id of the task that an argument names: an id, or "workflow/reference"."""
    try:
        return UUID(text)
    except ValueError:
        workflow, _slash, reference = text.partition("/")
    task = Task.named(workflow, reference)
    if task is None:
        raise ArgumentTypeError(f"{text!r} is neither a task's id nor workflow/reference of one")
    return task.id


def _completing(acts: Any) -> ArgumentParser:
    """Declare the recording of a result."""
    ended: ArgumentParser = acts.add_parser(
        "complete", help="record the result of a step that awaits it"
    )
    ended.add_argument("task", type=task_id, help=A_TASK)
    ended.add_argument("step", help="its name")
    how = ended.add_mutually_exclusive_group(required=True)
    how.add_argument("--result", type=payload_schemas.parse, help="as JSON")
    how.add_argument("--refused", default="", metavar="CODE", help="it was refused")
    return ended


class Command(BaseCommand):
    """Lists, shows, undoes, resubmits, holds and releases."""

    help = "Show tasks, and undo, resubmit, hold, release or prioritize them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the actions and their options."""
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.epilog = EXAMPLES
        acts = parser.add_subparsers(dest="act", required=True)
        listing = acts.add_parser("list", help="the newest tasks")
        listing.add_argument("--state", choices=TaskState.values)
        for name, what in (("show", "one task"), ("preview", "what an undo of it would do")):
            acts.add_parser(name, help=what).add_argument("task", type=task_id, help=A_TASK)
        waited = acts.add_parser("wait", help="wait for the end of a task that was submitted")
        waited.add_argument("workflow")
        waited.add_argument("reference")
        waited.add_argument("--seconds", type=float, default=30.0, help="at most (default: 30)")
        undoing = acts.add_parser("undo", help="have a task undone")
        undoing.add_argument("task", type=task_id, help=A_TASK)
        undoing.add_argument("--force", action="store_true", help="although something stands")
        again = acts.add_parser("resubmit", help="retry a failed step")
        again.add_argument(
            "--request", type=payload_schemas.parse, help="the changed input, as JSON"
        )
        again.add_argument("--nothing-done", action="store_true", help="found out by hand")
        done = acts.add_parser("done", help="say that a failed step was done by hand")
        done.add_argument("--result", type=payload_schemas.parse, required=True, help="as JSON")
        for step in (again, done):
            step.add_argument("step", type=int, help="the step's number, as `show` gives it")
        ended = _completing(acts)
        held = acts.add_parser("hold", help="hold a task, a step, an agent, or everything")
        held.add_argument("--task", type=task_id, help=A_TASK)
        held.add_argument("--agent", default="")
        held.add_argument("--step", default="", help="workflow/step")
        held.add_argument("--everything", action="store_true")
        acts.add_parser("holds", help="what is held")
        released = acts.add_parser("release", help="end a hold")
        released.add_argument("hold", type=int)
        preferred = acts.add_parser("prioritize", help="give a task another priority")
        preferred.add_argument("task", type=task_id, help=A_TASK)
        preferred.add_argument("--priority", type=int, required=True, help="higher goes first")
        probed = acts.add_parser(
            "probe",
            help="end the pause of an agent: have an open circuit breaker send its next probe at once",
        )
        probed.add_argument("agent")
        settled = acts.add_parser("settle", help="close the alert of an effect that showed late")
        settled.add_argument("alert", type=int, help="its number, as `alerts` gives it")
        acts.add_parser("alerts", help="the open alerts")
        for act in (undoing, again, done, ended, held, released, preferred, probed, settled):
            act.add_argument("--reason", required=True, help="kept in the history")
            act.add_argument("--actor", default=getpass.getuser(), help="who you are")

    def handle(self, *_: Any, act: str, **options: Any) -> None:
        """Run the action, and print its result as JSON."""
        result = getattr(self, f"_{act}")(**options)
        if isinstance(result, Refusal):
            raise CommandError(result.value, returncode=1)
        self.stdout.write(json.dumps(result, indent=2, default=str))

    def _list(self, state: str | None, **_: Any) -> Any:
        rows = Task.objects.filter(**({"state": state} if state else {})).order_by("-id")[:50]
        return list(rows.values("id", "workflow", "reference", "state", "created_at"))

    def _show(self, task: UUID, **_: Any) -> Any:
        row = Task.objects.filter(id=task).values("id", "workflow", "reference", "state").first()
        if row is None:
            return Refusal.NO_SUCH_TASK
        columns = (
            *("id", "name", "direction", "agent", "process_state", "attempt", "failure_count"),
            *("in_doubt", "outcome", "error_code", "error_message", "request", "result"),
            *("done_by", "flow"),
        )
        steps = Step.objects.filter(task=task).order_by("id")
        rows = steps.values(*columns, **OF_WAIT)
        return {**row, "steps": [with_words(step) for step in rows]}

    def _wait(self, workflow: str, reference: str, *, seconds: float, **_: Any) -> Any:
        """Return the state of a task once it has ended or stopped in error."""
        self._known(registry.workflows, "workflow", workflow)
        deadline = time.monotonic() + seconds
        while (status := progress(workflow, reference)) is None or status.state in LIVE_TASK_STATES:
            if set_aside(workflow, reference):
                raise CommandError("its submission was set aside: the alerts say why")
            if time.monotonic() > deadline:
                where = f"it is {status.state}" if status else "no submission process has taken it"
                raise CommandError(f"it has not come to its end after {seconds:g} s: {where}")
            time.sleep(LOOK)
        steps = {step.name: step.state for step in status.steps if step.direction == Direction.DO}
        task = Task.named(workflow, reference)
        if task and status.state == TaskState.ERROR:
            raise CommandError(self._why_in_error(task.id))
        return {"task": task and task.id, "state": status.state, "steps": steps}

    def _why_in_error(self, task: UUID) -> str:
        """Return what each failed step of a task says."""
        failed = Step.objects.filter(task=task, process_state=StepState.ERROR).order_by("id")
        why = (
            f"step {step.id}, {step.name}, {step.error_code}: {step.error_message}"
            for step in failed
        )
        return f"task {task} is in error: {'; '.join(why)}"

    def _preview(self, task: UUID, **_: Any) -> Any:
        return undo_preview.undo_preview(task) or Refusal.NO_SUCH_TASK

    def _undo(self, task: UUID, *, actor: str, reason: str, force: bool, **_: Any) -> Any:
        row = Task.objects.filter(id=task).first()
        if row is None:
            return Refusal.NO_SUCH_TASK
        answer = single.undo(row, actor=Person(name=actor), reason=reason, force=force)
        return self._answer(answer, "the undo has begun")

    def _resubmit(
        self, step: int, *, actor: str, reason: str, request: Any, nothing_done: bool, **_: Any
    ) -> Any:
        row = self._step(step)
        answer = self._valid(
            single.change, row, attempt=self._failed(step), actor=Person(name=actor),
            reason=reason, request=row.request if request is None else request,
            nothing_done=nothing_done,
        )  # fmt: skip
        return self._answer(answer, "resubmitted")

    def _done(self, step: int, *, actor: str, reason: str, result: Any, **_: Any) -> Any:
        answer = self._valid(
            single.done_by_hand, self._step(step), attempt=self._failed(step),
            actor=Person(name=actor), reason=reason, result=result,
        )  # fmt: skip
        return self._answer(answer, "marked as done")

    def _complete(
        self, task: UUID, step: str, *, actor: str, reason: str, result: Any, refused: str, **_: Any
    ) -> Any:
        steps = Step.objects.select_related("task").filter(task=task, name=step)
        row = steps.filter(process_state=StepState.AWAITING).first()
        if row is None:
            return Refusal.REPORTED if steps.exists() else Refusal.NO_SUCH_STEP
        answer = self._valid(
            single.record_result, row, attempt=row.attempt, actor=Person(name=actor),
            reason=reason, result=result, refused=refused,
        )  # fmt: skip
        return self._answer(answer, "recorded")

    def _hold(
        self, *, actor: str, reason: str, task: UUID | None, agent: str, step: str,
        everything: bool, **_: Any,
    ) -> Any:  # fmt: skip
        workflow, _slash, name = step.partition("/")
        if sum(map(bool, (task is not None, agent, name, everything))) != 1:
            raise CommandError("say what: --task, --agent, --step workflow/step or --everything")
        if agent:
            self._known(registry.agents, "agent", agent)
        made = hold(
            actor=actor, reason=reason, task=task, agent=agent, workflow=workflow, step=name
        )
        return made if isinstance(made, Refusal) else {"hold": made.id, "held": made.target}

    def _holds(self, **_: Any) -> Any:
        holds = Hold.objects.filter(until=None).order_by("id")
        return [
            {"hold": hold.id, "held": hold.target, "cause": hold.cause, "reason": hold.reason,
             "actor": hold.actor, "since": hold.since}
            for hold in holds
        ]  # fmt: skip

    def _release(self, *, actor: str, reason: str, **options: Any) -> Any:
        return release(options["hold"], actor=actor, reason=reason) or {"done": "released"}

    def _prioritize(self, task: UUID, *, actor: str, reason: str, priority: int, **_: Any) -> Any:
        if priority not in PRIORITIES:
            raise CommandError(f"a priority is between {PRIORITIES[0]} and {PRIORITIES[-1]}")
        refusal = prioritize(task, priority, actor=actor, reason=reason)
        return self._rung(refusal, f"its priority is {priority} now")

    def _probe(self, agent: str, *, actor: str, reason: str, **_: Any) -> Any:
        self._known(registry.agents, "agent", agent)
        return self._rung(probe_now(agent, actor=actor, reason=reason), "probe requested")

    def _alerts(self, **_: Any) -> Any:
        rows = Alert.objects.filter(closed_at=None).order_by("-last_seen")
        return list(rows.values("id", "severity", "title", "detail", "count", "first_seen"))

    def _settle(self, alert: int, *, actor: str, reason: str, **_: Any) -> Any:
        if not alerts.close_late_effect(alert, by=actor, reason=reason):
            raise CommandError(f"{alert} is not the open alert of a late effect")
        return {"closed": alert}

    def _known(self, table: dict[str, Any], kind: str, name: str) -> None:
        try:
            registry.get(table, kind, name)
        except registry.NotRegistered as error:
            raise CommandError(str(error)) from error

    def _rung(self, refusal: Refusal | None, done: str) -> Any:
        queues.ring_after_commit(queues.SCHEDULER)
        return refusal or {"done": done}

    def _valid(self, act: Any, *arguments: Any, **options: Any) -> single.Answer:
        try:
            answer: single.Answer = act(*arguments, **options)
        except payload_schemas.Invalid as problem:
            raise CommandError(str(problem)) from problem
        return answer

    def _answer(self, answer: single.Answer, done: str) -> Any:
        if isinstance(answer, Operation):
            return {"operation": answer.id, "waits for a second person": answer.approval}
        return answer or {"done": done}

    def _step(self, step: int) -> Step:
        row = Step.objects.select_related("task").filter(id=step).first()
        if row is None:
            raise CommandError(Refusal.NO_SUCH_STEP.value)
        return row

    def _failed(self, step: int) -> int:
        """Return the attempt of a step in error, as it stands when the command is given."""
        failed = Step.objects.filter(id=step, process_state=StepState.ERROR)
        return failed.values_list("attempt", flat=True).first() or 0
