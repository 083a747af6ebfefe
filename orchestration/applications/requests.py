"""What applications ask for about their tasks, and report of them: posted durably, in their transactions."""

from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any
from uuid import UUID

from .. import registry
from ..agents import payload_schemas
from ..agents.webhook import Reported
from ..database import sql
from ..decisions.amendment import NOTHING, Amendment
from ..messaging import queues
from ..models import Submission, Task, TaskRequest
from ..models.fields import DatabaseNow
from ..models.request import RequestedAct
from ..states import Outcome

RESULT = "its result"  # why a result is reported
MAY_READ = "SELECT has_table_privilege('orchestration_task', 'SELECT')"

COLUMNS = (
    *("request", "workflow", "reference", "what", "step", "attempt", "amendment", "note", "actor"),
    *("because", "reply_to"),
)
POST = """
SELECT orchestration_request(%(request)s::uuid, %(workflow)s, %(reference)s, %(what)s, %(step)s,
    %(attempt)s, %(amendment)s::jsonb, %(note)s::jsonb, %(actor)s, %(because)s, %(reply_to)s)
"""  # a function of the database, as for submissions


def post(request: TaskRequest) -> None:
    """Post a request, durably, and ring for the submission process; see `api.request_undo`."""
    _require_known(request)
    changes, note = map(payload_schemas.written, (request.amendment, request.note))
    values = {name: getattr(request, name) for name in COLUMNS}
    sql.run(POST, values | {"amendment": changes, "note": note, "request": str(request.request)})
    queues.ring_after_commit(queues.SUBMISSION)


def _require_known(request: TaskRequest) -> None:
    """Raise `NotRegistered` for a workflow that was never there, or that is gone and has nothing to undo.

    For a database role that may not read the tasks, `orchestration_request` decides what it may ask for.
    """
    try:
        registry.get(registry.workflows, "workflow", request.workflow)
    except registry.NotRegistered as unknown:
        if request.what not in {RequestedAct.UNDO, RequestedAct.UNDO_PART}:
            raise registry.NotRegistered(f"{unknown}; its tasks can only be undone") from None
        about = {"workflow": request.workflow, "reference": request.reference}
        if sql.run(MAY_READ, {})[0][0] and not any(
            model.objects.filter(**about).exists() for model in (Task, Submission)
        ):
            why = f"{unknown}; no task of it has the reference {request.reference!r}"
            raise registry.NotRegistered(why) from None


def request_undo(
    workflow: str,
    reference: str,
    *,
    actor: str,
    reason: str,
    id: UUID,  # noqa: A002 - what it is to the application
    steps: Collection[str] | None = None,
    reply_to: str = "",
) -> None:
    """Ask for a task to be undone, durably, inside your own transaction if you like.

    It is carried out after the task's submission, also after one that an operator has to decide on, and
    after earlier requests about it; `id` is yours: one posted twice is one. When the undo has begun, the
    workflow's `accepted` is called in the same transaction, and the message `undoing` names the request.
    Where something that was done, or may have been, is irreversible, `reply_to` (by default the workflow's
    owner) gets a message `refused` whose detail is {"request": id, "refusal": the name of a `Refusal`}.

    `steps` names the only steps that are undone, with all that come after them: their children, and what
    they did, in reverse order. Other steps go on; a processed task is processed again in the end. The message
    `undoing_part` has the names of all these `steps`, and `accepted` gets "undo_part". If no other step is
    left, the task itself is undone. NO_SUCH_STEP and NOT_UNDOABLE (that was undone before) are refusals.
    `ValueError` is raised where it names none: an empty list is not the whole task.

    A task whose workflow is no longer declared is undone by what its steps have, without `accepted`, once no
    worker has known the workflow for some two minutes; without such a task, `NotRegistered` is raised.

    >>> from uuid import uuid4
    >>> task = submit("greet", reference="42", data={"name": "Ada"})
    >>> request_undo("greet", "42", actor="Ada", reason="I am away", id=uuid4())
    >>> run.go()
    >>> progress("greet", "42").state.value
    'undone'
    """
    if steps is not None and (not steps or isinstance(steps, str)):
        raise ValueError(f"steps={steps!r}: give a list with the name of at least one step")
    post(
        TaskRequest(
            request=id,
            workflow=workflow,
            reference=reference,
            what=RequestedAct.UNDO if steps is None else RequestedAct.UNDO_PART,
            amendment={} if steps is None else {"steps": list(steps)},
            actor=actor,
            because=reason,
            reply_to=reply_to,
        )
    )


def request_resubmit(  # noqa: PLR0913 - what it is about, who wants it, and what changes
    workflow: str,
    reference: str,
    step: str,
    *,
    attempt: int,
    actor: str,
    reason: str,
    id: UUID,  # noqa: A002 - what it is to the application
    amendment: Amendment = NOTHING,
    note: dict[str, Any] | None = None,
    reply_to: str = "",
) -> None:
    """Ask for a step in error to be tried again, as `request_undo` asks for an undo.

    `attempt` is the one that was seen to fail: if it was resubmitted since, the request is refused.
    `amendment` is what changes with it; `note` is what your `accepted` is given to write then. Guarded
    fields change only as the workflow's `permit` allows.

    >>> from uuid import uuid4
    >>> request_resubmit("greet", "42", "hello", attempt=1, actor="Ada", reason="a typo", id=uuid4(),
    ...                  amendment=Amendment(request={"to": "Eva"}))
    """
    post(
        TaskRequest(
            request=id,
            workflow=workflow,
            reference=reference,
            what=RequestedAct.RESUBMIT,
            step=step,
            attempt=attempt,
            amendment=asdict(amendment),
            note=note,
            actor=actor,
            because=reason,
            reply_to=reply_to,
        )
    )


def amend(  # noqa: PLR0913 - what it is about, who wants it, and what changes
    workflow: str,
    reference: str,
    *,
    data: Mapping[str, Any],
    actor: str,
    reason: str,
    id: UUID,  # noqa: A002 - what it is to the application
    note: dict[str, Any] | None = None,
    reply_to: str = "",
) -> None:
    """Ask for fields of a running task's input to be replaced, for its steps that have not been sent.

    `data` has the new values by name; other fields stay. It is posted as `request_undo` is, and guarded
    fields change only as the workflow's `permit` allows. A request that was built and not sent yet is built
    again. The workflow's `accepted` is called in the same transaction, and the message `amended` has the
    `fields` that changed. If a step has used a former value, nothing changes: `reply_to` gets a message
    `refused` with TAKEN and the names of these `steps`; ENDED, UNDOING and INVALID are other refusals.

    >>> from uuid import uuid4
    >>> task = submit("greet", reference="42", data={"name": "Ada"})
    >>> amend("greet", "42", data={"name": "Eva"}, actor="Ada", reason="a typo", id=uuid4())
    >>> run.go()
    >>> [call.payload["to"] for call in run.calls("greeter.greet")]
    ['Eva', 'Eva']
    """
    post(
        TaskRequest(
            request=id,
            workflow=workflow,
            reference=reference,
            what=RequestedAct.AMEND,
            amendment={"data": dict(data)},
            note=note,
            actor=actor,
            because=reason,
            reply_to=reply_to,
        )
    )


def complete(  # noqa: PLR0913 - what it is about, who says so, and how it ended
    workflow: str = "",
    reference: str = "",
    step: str = "",
    *,
    by: tuple[str, str] | None = None,
    result: Mapping[str, Any] | None = None,
    refused: str = "",
    message: str = "",
    of: str = "",
    actor: str,
    id: UUID,  # noqa: A002 - what it is to the application
    reply_to: str = "",
) -> None:
    """Report how a step ends that awaits its result: with a `result`, or `refused` with a code.

    `step` is its name, or that of the signal. It is durable, in your own transaction if you like, and `id` is
    yours: one posted twice is one. What comes before the step awaits it is kept until then, and of several
    reports the first counts. `of` is what the service calls what it accepted (the `id` of `Later`): a report
    of an earlier request, which has failed since, is then refused. Where it cannot be recorded, `reply_to`
    gets a message `refused`, as for `request_undo`: REPORTED if the step has ended otherwise, INVALID if
    it does not return such a result.

    Instead of workflow, reference and step, `by` may name the agent and what its service calls what it
    accepted: `by=("bank", "pi_1")`. Where no step is known by that yet, it is kept for an hour.

    >>> from uuid import uuid4
    >>> goods = Step(name="goods", signal="goods_arrived", ends_within=86_400)
    >>> register(Workflow(name="pickup", steps=[goods]))
    >>> task = submit("pickup", reference="42", data={})
    >>> complete("pickup", "42", "goods_arrived", result={"boxes": 2}, actor="the gate", id=uuid4())
    >>> run.go()
    >>> progress("pickup", "42").steps[0].result
    {'boxes': 2}
    """
    ends = None if refused else dict(result or {})
    if by is not None:
        if workflow or reference or step or of:
            raise TypeError("complete() takes a workflow, reference and step, or `by`")
        report = Reported(id=str(id), of=by[1], result=ends, refused=refused, message=message)
        post_reports({id: report}, agent=by[0], actor=actor, reply_to=reply_to)
        return
    request = TaskRequest(
        request=id, workflow=workflow, reference=reference, what=RequestedAct.COMPLETE, step=step,
        amendment=_amendment(ends, refused, message, of), actor=actor, because=refused or RESULT,
        reply_to=reply_to,
    )  # fmt: skip
    post(request)


def post_reports(
    reports: Mapping[UUID, Reported], *, agent: str, actor: str, reply_to: str = ""
) -> None:
    """Post what a service reports by its own ids, all of it or nothing; one posted twice is one.

    Raises `NotRegistered` for an unknown agent, and `Invalid` for what cannot be kept.
    """
    registry.get(registry.agents, "agent", agent)
    rows = [
        TaskRequest(
            request=known,
            created_at=DatabaseNow(),
            reference=str(known),  # in no line of others, until its task is known
            what=RequestedAct.COMPLETE,
            agent=agent,
            external_id=report.of,
            amendment=_amendment(report.result, report.refused, report.message, report.of),
            actor=actor,
            because=report.refused or RESULT,
            reply_to=reply_to,
        )
        for known, report in reports.items()
    ]
    payload_schemas.written([row.amendment for row in rows])
    TaskRequest.objects.bulk_create(rows, ignore_conflicts=True)
    queues.ring_after_commit(queues.SUBMISSION)


def _amendment(
    result: Mapping[str, Any] | None, refused: str, message: str, of: str
) -> dict[str, Any]:
    """Return how a step ends, as a request has it."""
    outcome = Outcome.REJECTED if refused else Outcome.DONE
    return {
        "outcome": outcome.value, "result": dict(result or {}), "code": refused, "of": of,
        "message": message,
    }  # fmt: skip
