"""Acts of a person on one step or task: done at once, or asked for as an operation of one item.

A second person is needed where an act goes beyond what the task itself says (a guarded field of a
request, money that was moved by hand and that its service does not show), and where it goes beyond
what one person may do alone within a day. Resubmitting a step as it is needs none.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db import transaction

from ..agents import by_hand as agents_by_hand
from ..agents import payload_schemas
from ..decisions.input_change import TakenBy
from ..decisions.progress import Refusal
from ..messaging import queues
from ..models import Operation, Step, Task
from ..models.operation import Act
from ..people import limits
from ..people.person import Person
from ..transitions import resubmit as transitions_resubmit
from ..transitions import undo as transitions_undo
from ..transitions.input_changes import change_input
from ..workflows.workflow import Workflow
from . import lifecycle, recorded
from .items import SelectedTasks, preview_figures
from .lifecycle import PLAIN, Terms

RATE = 20.0  # items a second; there is one
UNKNOWN = "{agent} does not have this: check the id"
UNCONFIRMED = "{agent} cannot confirm that this was {what}"

# None if it was done, the reason if it was refused, the operation if it waits for a second person.
Answer = Refusal | Operation | None


class NotShown(payload_schemas.Invalid):
    """The service of a step was asked, and does not have the result that was entered."""


def resubmit(step: Step, *, attempt: int, actor: Person, reason: str) -> Refusal | None:
    """Make a step in error pending again, unchanged; return why not, or None when it was done."""
    with transaction.atomic():
        refusal = transitions_resubmit.resubmit(
            step.id, attempt=attempt, actor=actor.name, reason=reason
        )
        if refusal is None:
            limits.count(actor, 1, money_of(step))
            queues.ring_after_commit(queues.SCHEDULER)
    return refusal


def change(
    step: Step,
    *,
    attempt: int,
    actor: Person,
    reason: str,
    request: dict[str, Any],
    nothing_done: bool,
) -> Answer:
    """Resubmit a step with another request, or although it was in doubt.

    Raises `payload_schemas.Invalid` if its action does not accept the request.
    """
    if request == step.request and not nothing_done:
        return resubmit(step, attempt=attempt, actor=actor, reason=reason)
    payload_schemas.check(step, request)
    changes: dict[str, Any] = {"request": request, "nothing_done": nothing_done}
    return _alone_or_asked(
        _step_alone(step, attempt), Act.RESUBMIT, actor, reason,
        terms=Terms(second=_beyond(step, request, nothing_done=nothing_done), change=changes),
        money=money_of(step),
        do=lambda: transitions_resubmit.resubmit(
            step.id, attempt=attempt, actor=actor.name, reason=reason, **changes
        ),
    )  # fmt: skip


def done_by_hand(
    step: Step, *, attempt: int, actor: Person, reason: str, result: dict[str, Any]
) -> Answer:
    """Mark a step in error as done; of money, only what its service shows, or a second person confirms.

    Raises `payload_schemas.Invalid` if the result is not that of its action, and `NotShown`.
    """
    computed = step.task.workflow, step.name
    payload_schemas.check_result(step.agent, step.action, result, computed=computed)
    why = ""
    if agents_by_hand.concerns_money(step):
        shown = agents_by_hand.look_up(step, result, reference=step.task.reference)
        if shown is False:
            raise NotShown(UNKNOWN.format(agent=step.agent))
        why = "" if shown else UNCONFIRMED.format(agent=step.agent, what="done by hand")
    return _alone_or_asked(
        _step_alone(step, attempt), Act.BY_HAND, actor, reason,
        terms=Terms(second=why, result=result), money=money_of(step),
        do=lambda: transitions_resubmit.done_by_hand(
            step.id, attempt=attempt, actor=actor.name, reason=reason, result=result
        ),
    )  # fmt: skip


def record_result(
    step: Step,
    *,
    attempt: int,
    actor: Person,
    reason: str,
    result: dict[str, Any],
    refused: str = "",
) -> Answer:
    """Record how an awaiting step ends: with a result, or `refused` with a code.

    Of money, only what its service shows, or a second person confirms; that it refused, only the latter.
    Raises `payload_schemas.Invalid` if the result is not that of its step, and `NotShown`.
    """
    why = ""
    if not refused:
        computed = step.task.workflow, step.name
        payload_schemas.check_result(step.agent, step.action, result, computed=computed)
    if agents_by_hand.concerns_money(step):
        why = _unconfirmed(step, result, refused)
    ends: dict[str, Any] = {"result": {} if refused else result, "refused": refused}
    return _alone_or_asked(
        _step_alone(step, attempt, awaiting=True), Act.BY_HAND, actor, reason,
        terms=Terms(second=why, result=None if refused else result, change=ends),
        money=money_of(step),
        do=lambda: recorded.record(
            step.id, attempt=attempt, actor=actor.name, reason=reason, **ends
        ),
    )  # fmt: skip


def _unconfirmed(step: Step, result: dict[str, Any], refused: str) -> str:
    """Return why a second person has to confirm how a step ended; empty if its service shows it."""
    if refused:
        return UNCONFIRMED.format(agent=step.agent, what="refused")
    shown = agents_by_hand.look_up(step, result, reference=step.task.reference)
    if shown is False:
        raise NotShown(UNKNOWN.format(agent=step.agent))
    return "" if shown else UNCONFIRMED.format(agent=step.agent, what="done")


def undo(
    task: Task, *, actor: Person, reason: str, force: bool, planned: str | None = None
) -> Answer:
    """Begin the undo of a task; `planned` is the signature of the plan that was shown."""
    chosen = SelectedTasks(tasks=_task(task.id), explicit=True, forced=force)
    return _alone_or_asked(
        chosen, Act.UNDO, actor, reason, terms=PLAIN, money=preview_figures(Act.UNDO, chosen)["money"],
        do=lambda: transitions_undo.undo(
            task.id, actor=actor.name, reason=reason, force=force, planned=planned
        ),
    )  # fmt: skip


def amend(
    task: Task, workflow: Workflow, *, actor: Person, reason: str, data: Mapping[str, Any]
) -> Refusal | TakenBy | None:
    """Change fields of a running task's input, if it is still the one that the actor saw.

    Raises ValueError for an input that the task cannot have, and for guarded fields: of these only its
    application says what a change of a running task means.
    """
    if guarded := payload_schemas.guards(workflow.steps, data):
        raise payload_schemas.Invalid(f"only the application can change {', '.join(guarded)}")
    with transaction.atomic():
        answer = change_input(
            task.id, workflow, data, actor=actor.name, reason=reason, seen=task.data
        )
        if answer is None:
            limits.count(actor, 1, {})
    return answer


def money_of(step: Step) -> dict[str, int]:
    """Return what a step moves, by currency, in minor units."""
    charges = step.charges or {}
    return {charges["currency"]: int(charges["amount"])} if charges.get("currency") else {}


def _beyond(step: Step, request: Mapping[str, Any], *, nothing_done: bool) -> str:
    """Return why a changed resubmission needs a second person by itself, empty if it does not."""
    if changed := payload_schemas.changed_guarded(step, request):
        return f"this changes {', '.join(changed)} of a request to {step.agent}"
    if nothing_done and step.in_doubt and agents_by_hand.concerns_money(step):
        return f"this sends a request to {step.agent} anew that may have moved money"
    return ""


def _alone_or_asked(
    chosen: SelectedTasks,
    act: Act,
    actor: Person,
    reason: str,
    *,
    terms: Terms,
    money: Mapping[str, int],
    do: Callable[[], Refusal | None],
) -> Answer:
    """Do an act if one person may do it alone; otherwise make it an operation that waits for another."""
    with transaction.atomic():
        # before the task: an act that waits for the same person holds no task meanwhile
        day = limits.day_of(actor, lock=True)
        why = terms.second or day.excess(1, money)
        if not why:
            refusal = do()
            if refusal is None:
                limits.count(actor, 1, money)
                queues.ring_after_commit(queues.SCHEDULER)
            return refusal
    return _ask(chosen, act, actor, reason, replace(terms, second=why))


def _ask(
    chosen: SelectedTasks, act: Act, actor: Person, reason: str, terms: Terms
) -> Refusal | Operation:
    selection = {"tasks": [str(task) for task in chosen.tasks]}
    operation = lifecycle.draft(act, selection, chosen, actor=actor)
    refusal = lifecycle.confirm(
        operation.id, chosen, actor=actor, reason=reason, rate=RATE, terms=terms
    )
    if refusal is not None:
        operation.delete()
        return refusal
    operation.refresh_from_db()
    return operation


def _step_alone(step: Step, attempt: int, *, awaiting: bool = False) -> SelectedTasks:
    """Select one step as it was seen: at another attempt it is not selected any more."""
    seen = Step.objects.filter(id=step.id, attempt=attempt).values_list("id", flat=True)
    return SelectedTasks(tasks=_task(step.task_id), steps=seen, explicit=True, awaiting=awaiting)


def _task(task: UUID) -> Any:
    return Task.objects.filter(id=task).values_list("id", flat=True)
