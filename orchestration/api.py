"""The engine's public face: what an application imports, and nothing else of it.

Declare a workflow in your app's `workflow.py`:

    from orchestration.api import HttpAgent, Step, Workflow, action, field, key, register, result

    class Greeter(HttpAgent):
        name = "greeter"
        base_url = "https://greetings.example"

        @action
        async def greet(self, call):
            return await self.post(call, "/greetings", body=call.payload, expect={"text": str})

        @action
        async def take_back(self, call):
            return await self.post(call, "/greetings/undo", body=call.payload)

    register(Greeter)
    register(Workflow(name="greet", steps=[
        Step(name="hello", agent="greeter", action="greet", request={"to": field("name")},
             undo="take_back", undo_request={"key": key("hello")}),
        Step(name="again", agent="greeter", action="greet", after=["hello"],
             request={"to": result("hello", "text")}, irreversible="they have heard it twice"),
    ]))

Submit a task anywhere, inside your own transaction if you like, and look at its `progress`. In the examples
of docstrings, `run` is the fixture of the testing kit, which does what the processes do.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from . import registry
from .agents.actions import Call, action
from .agents.base import Agent
from .agents.errors import Fault, Later, Rejected, Transient, Unknown
from .agents.http import HttpAgent
from .agents.payload_schemas import Invalid
from .agents.policy_values import PolicyValues, StepPolicyValues
from .agents.service_ledger import LedgerEntry
from .agents.webhook import InvalidWebhook, Reported, UnverifiedWebhook, Webhook
from .applications import status_messages as response_queue
from .applications.asynchronous import asynchronous
from .applications.audits import LATELY, Check, Part, Scope, Violation
from .applications.external_view import ExternalView
from .applications.requests import amend, complete, request_resubmit, request_undo
from .applications.status_messages import Status
from .applications.submissions import Posting, submit_many
from .applications.task_handle import TaskHandle
from .applications.task_status import Progress, StepProgress, progress
from .applications.tokens import READ_STATUS, Caller, authenticate
from .applications.tokens import ensure as ensure_application
from .cluster.duty import NOW, Duty, Sweep
from .database.capped_counts import CappedPaginator
from .database.sql import is_busy, is_unavailable
from .decisions.amendment import Amendment
from .decisions.progress import Refusal
from .declarations import schedules as declared_schedules
from .models import RetentionPolicy
from .models.application import Delivery
from .models.inbox import StatusKind
from .payloads.currencies import digits as currency_digits
from .payloads.money import format_money
from .payloads.placeholders import done, field, first, item, key, loaded, not_, passed, result
from .people.roles import give
from .schedules import rows as schedule_rows
from .states import Direction, Health, StepState, TaskState
from .workflows.schedule import Schedule
from .workflows.step import Step
from .workflows.workflow import Accepted, AskedChange, Found, Refused, Submitted, Workflow

__all__ = [
    "LATELY", "NOW", "READ_STATUS", "Accepted", "Agent", "Amendment", "AskedChange", "Call", "Caller",
    "CappedPaginator", "Check", "Delivery", "Direction", "Duty", "ExternalView", "Fault", "Found", "Health",
    "HttpAgent", "Invalid", "InvalidWebhook", "Later", "LedgerEntry", "Part", "PolicyValues", "Posting",
    "Progress", "Refusal", "Refused", "Rejected", "Reported", "Schedule", "Scope", "Status", "StatusKind",
    "Step", "StepPolicyValues", "StepProgress", "StepState", "Submitted", "Sweep", "TaskHandle",
    "TaskState", "Transient", "Unknown", "UnverifiedWebhook", "Violation", "Webhook", "Workflow",
    "aacknowledge", "aamend", "acknowledge", "acomplete", "action", "amend", "aprogress",
    "arequest_resubmit", "arequest_undo", "astatus_messages", "asubmit", "asubmit_many", "authenticate",
    "complete", "currency_digits", "done", "ensure_application", "field", "first", "format_money", "give",
    "is_busy", "is_unavailable", "item", "keep_tasks", "key", "loaded", "not_", "passed", "progress",
    "receive_status", "register", "register_audit", "register_duty", "register_external_view",
    "register_scope", "request_resubmit", "request_undo", "result", "schedule", "status_messages", "submit",
    "submit_many", "unschedule",
]  # fmt: skip


def register(thing: Workflow | Schedule | type[Agent]) -> None:
    """Make a workflow, a schedule or an agent known under its name, which no other one may have.

    >>> hello = Step(name="hello", agent="greeter", action="greet", request={"to": field("name")}, undo=None)
    >>> register(Workflow(name="welcome", steps=[hello]))
    """
    if isinstance(thing, Agent):
        raise TypeError(f"register the class {type(thing).__name__} and not an instance of it")
    caller = inspect.stack(0)[1]
    place = f"{Path(caller.filename).parent.name}/{Path(caller.filename).name}:{caller.lineno}"
    if isinstance(thing, Workflow):
        registry.add(registry.workflows, "workflow", thing.name, thing, place)
    elif isinstance(thing, Schedule):
        registry.add(registry.schedules, "schedule", thing.name, thing, place)
    elif not hasattr(thing, "name"):
        raise TypeError(
            f"register() takes a workflow, a schedule, or an agent that has a name, not {thing!r}"
        )
    else:
        registry.add(registry.agents, "agent", thing.name, thing, place)


def keep_tasks(workflow: str, *, days: float | None) -> None:
    """Keep the ended tasks of a workflow for some days; None: for ever. Admins may change it again.

    >>> keep_tasks("greet", days=90)
    """
    RetentionPolicy.objects.update_or_create(workflow=workflow, defaults={"keep_days": days})


def receive_status(application: str, receiver: Callable[[Sequence[Status]], None]) -> None:
    """Have `receiver` called with batches of status messages to `application`, in a transaction.

    Give its name as `reply_to` to `submit`, and the queue `status.<name>` a worker.

    >>> kinds = []
    >>> receive_status("hotel", lambda messages: kinds.extend(status.kind.value for status in messages))
    >>> task = submit("greet", reference="42", data={"name": "Ada"}, reply_to="hotel")
    >>> run.go()
    >>> kinds
    ['received', 'completed']
    """
    registry.receivers[application] = receiver


def register_audit(name: str, audit: Callable[[Part], Iterable[Violation]]) -> None:
    """Have `audit` run with every audit of the engine: for each slice of the tasks, and once for all.

    Which of both, its `Part` says. It reads temporary tables and views, never the engine's own: for a slice,
    in its snapshot of the database, `audit_task`, `audit_step` and `audit_effect` (what the ledgers have of
    these tasks); once, `audit_ledger` (all of them), and `audit_data`, `audit_submission`, `audit_request`
    and `audit_message` (all rows). `assurance.audit.tables` has their columns. `Check` runs a query.

    >>> nameless = Check(invariant=12, remedy="enter it", scope=Scope.ALL, query=
    ...     "SELECT reference, 'it has no name' FROM audit_data WHERE data ->> 'name' = ''")
    >>> register_audit("names", lambda part: nameless.violations({}) if part.scope is Scope.ALL else [])
    """
    registry.audits[name] = audit


def register_duty(duty: Duty) -> None:
    """Have the leading housekeeper run a duty of yours, after its own.

    Register it in your application's module `duties`, which only housekeepers load. Their database role
    asks `due`, so it must be able to read your tables. What fails is an alert, and is retried each sweep.

    >>> register_duty(Duty(name="delete drafts", run=lambda sweep: delete_drafts(), every=3600.0))
    """
    registry.duties[duty.name] = duty


def register_external_view(workflow: str, see: Callable[[str, bool], ExternalView | None]) -> None:
    """Have operators shown what those outside see of each task of a workflow.

    `see` gets the task's reference, and whether the operator may see personal data. It returns None
    where there is nothing to see, and costs a constant number of queries.

    >>> def see(reference, personal):
    ...     return ExternalView(who="the guest", sentence="Your room is ready.")
    >>> register_external_view("greet", see)
    """
    registry.external_views[workflow] = see


def register_scope(name: str, meaning: str) -> None:
    """Have tokens that are good for something of yours: `authenticate` says which token is.

    >>> register_scope("rooms:read", "Read which rooms are free")
    """
    registry.scopes[name] = meaning


def status_messages(application: str, *, limit: int, after: int = 0) -> list[dict[str, Any]]:
    """Return the oldest status messages to an application beyond the id `after`, as JSON, until acknowledged.

    >>> task = submit("greet", reference="42", data={"name": "Ada"}, reply_to="hotel")
    >>> run.go()
    >>> [message["kind"] for message in status_messages("hotel", limit=100)]
    ['received', 'completed']
    """
    return [response_queue.as_json(row) for row in response_queue.fetch(application, limit, after)]


def acknowledge(application: str, ids: Sequence[int]) -> int:
    """Remove status messages that an application has dealt with; return how many there still were.

    >>> task = submit("greet", reference="42", data={"name": "Ada"}, reply_to="hotel")
    >>> run.go()
    >>> acknowledge("hotel", [message["id"] for message in status_messages("hotel", limit=100)])
    2
    """
    return response_queue.acknowledge(application, ids)


def submit(
    workflow: str,
    *,
    reference: str,
    data: dict[str, Any],
    reply_to: str = "",
    priority: int = 0,
    fairness_key: str = "",
    about: TaskHandle | None = None,
) -> TaskHandle:
    """Post a task, durably, and ring for the submission process; return its handle.

    `reference` is your own id for it (at most 100 characters): one task per workflow and reference, however
    often it is posted. Inside a transaction the task is posted when that commits. Redis need not be there: a
    supervisor rings again. Within a priority, tasks of different `fairness_key`s (at most 100 characters; by
    default the application's name) take turns: much of one does not delay a little of another. `about` is the
    task that this one follows up, as a return follows an order: pages show each with the other. Raises
    `NotRegistered`, `Unresolved` (both `LookupError`) or `ValueError`, as `submit_many` does.

    >>> task = submit("greet", reference="42", data={"name": "Ada"}, priority=5)
    >>> run.go()
    >>> task.progress().state.value
    'processed'
    """
    task = Posting(
        workflow=workflow,
        reference=reference,
        data=data,
        reply_to=reply_to,
        priority=priority,
        fairness_key=fairness_key,
        about=about,
    )
    return submit_many([task])[0]


def schedule(name: str, *, workflow: str, **values: Any) -> None:
    """Create a schedule at run time, or change the one of this name: one for each tenant, say.

    `values` are fields of `Schedule`; what is left out has its default. In a transaction it counts from the
    commit on. If that changes when it is due, it is planned anew from now on. A pause of an operator's stays.
    Raises `ValueError` with all that is wrong with it, and changes nothing; `TypeError` for unknown fields.
    One that code declares (`register`) is changed in the admin only.

    >>> schedule("report-ada", workflow="greet", data={"name": "Ada"}, cron="0 2 * * *", zone="Europe/Berlin")
    >>> unschedule("report-ada")
    True
    """
    declared = Schedule(name=name, workflow=workflow, **values)
    declared_schedules.require(declared)
    schedule_rows.put(declared)


def unschedule(name: str) -> bool:
    """Delete a schedule that was created at run time, reporting whether there was one; its tasks stay.

    Raises `ValueError` for one that code declares.

    >>> unschedule("report-nobody")
    False
    """
    return schedule_rows.remove(name)


# For asynchronous views: each is a transaction of its own, as Django has no asynchronous ones.
asubmit = asynchronous(submit)
asubmit_many = asynchronous(submit_many)
aprogress = asynchronous(progress)
arequest_undo = asynchronous(request_undo)
arequest_resubmit = asynchronous(request_resubmit)
aamend = asynchronous(amend)
acomplete = asynchronous(complete)
astatus_messages = asynchronous(status_messages)
aacknowledge = asynchronous(acknowledge)
