"""Jobs of the actors: the product's own functions, called as its processes call them."""

from collections.abc import Callable
from uuid import UUID, uuid5

from django.db.models import QuerySet

from orchestration import api, scheduler, submission, supervisor, task_requests
from orchestration.assurance.retention.removal import REMOVE_TASKS
from orchestration.cluster import leader_election
from orchestration.cluster.duty import Duty, Sweep
from orchestration.cluster.leader_election import HOUSEKEEPER, Leadership
from orchestration.cluster.leader_memory import Memory
from orchestration.database import clock
from orchestration.housekeeping import housekeeper
from orchestration.messaging import queues
from orchestration.models import Hold, Step, Task
from orchestration.states import Direction, StepState, TaskState
from orchestration.transitions import holds, priority, resubmit, undo
from orchestration.workers import scheduler_duties

from .declared import data_of

SIZE = 50
NEVER = float("inf")
ROUNDS = 5  # of a scheduler that has more to claim
IDS = UUID("00000000-0000-5000-8000-000000000000")

Job = Callable[[], object]


def schedule(by: str, *, look: bool, undo: bool = True) -> None:
    """Do a scheduler's turn over the replies in its inbox; with `look`, over all there is.

    Without `undo` it ends before it begins what was asked to be undone.
    """
    replies = [reply for reply in queues.take(queues.SCHEDULER, SIZE) if reply != queues.LOOK]
    agents = scheduler.all_agents() if look else set()
    for _ in range(ROUNDS):
        agents = scheduler.run_once(by, replies, agents).more
        if look and undo:
            agents |= scheduler_duties.run().more
        replies, look = [], False
        if not agents:
            break


def take() -> None:
    """Do a submission process's turn."""
    submission.take(SIZE)
    task_requests.take(SIZE)


def sweep(by: str, memory: Memory) -> None:
    """Sweep as a supervisor, which a former leader may do as well."""
    leadership = Leadership(holder=by, epoch=1, at=clock.database_now())
    supervisor.sweep(leadership, memory, chance=lambda: 0.0)


def memory() -> Memory:
    """Return a supervisor's memory by which no interval of a duty is over."""
    rested = Memory()
    rested.next_at = {duty.name: NEVER for duty in supervisor.DUTIES}
    return rested


def keep_house(by: str, *duties: Duty) -> None:
    """Do duties of a housekeeper."""
    leadership = leader_election.acquire(by, name=HOUSEKEEPER)
    if leadership is not None:
        sweep = Sweep(leadership=leadership)
        for duty in duties:
            sweep.perform(duty)


# with how often each is done, relative to the others
DUTIES = (
    (housekeeper.RELEASE_HELD_STEPS, 3.0),
    (REMOVE_TASKS, 2.0),
    (housekeeper.ADVANCE, 1.0),
    (housekeeper.AGGREGATE_INCIDENTS, 2.0),
    (housekeeper.RETURN_DEAD_LETTERS, 1.0),
    (housekeeper.MARK_OVERDUE_TASKS, 1.0),
)
# what time alone brings: ends of holds, replies that were put off
OF_TIME = (housekeeper.RELEASE_HELD_STEPS, housekeeper.RETURN_DEAD_LETTERS)


def post(workflow: str, reference: str, name: str = "Ada") -> None:
    """Post a task, as an application does."""
    api.submit(workflow, reference=reference, data=data_of(reference, name))


def ask_undo(workflow: str, reference: str, number: int) -> None:
    """Ask for an undo, as an application does."""
    api.request_undo(
        workflow, reference, actor="customer", reason="changed my mind", id=uuid5(IDS, str(number))
    )


def ask_undo_part(workflow: str, reference: str, number: int) -> None:
    """Ask for the undo of a step, and of what comes after it, as an application does."""
    steps = Step.objects.filter(
        task__workflow=workflow, task__reference=reference, direction=Direction.DO
    )
    if names := list(steps.order_by("id").values_list("name", flat=True)):
        api.request_undo(
            workflow, reference, actor="customer", reason="not that", id=uuid5(IDS, str(number)),
            steps=[names[number % len(names)]],
        )  # fmt: skip


def ask_resubmit(workflow: str, reference: str, number: int) -> None:
    """Ask for the step in error to be tried again, as an application does."""
    step = in_error().filter(task__workflow=workflow, task__reference=reference).first()
    if step is not None:
        api.request_resubmit(
            workflow, reference, step.name, attempt=step.attempt, actor="customer",
            reason="another card", id=uuid5(IDS, str(number)),
        )  # fmt: skip


def ask_amend(workflow: str, reference: str, number: int) -> None:
    """Ask for another input of a task, as an application does."""
    api.amend(
        workflow, reference, data={"name": f"Eve {number}"}, actor="customer", reason="a typo",
        id=uuid5(IDS, str(number)),
    )  # fmt: skip


def in_error() -> QuerySet[Step]:
    """Return the steps in error, the first first."""
    return Step.objects.filter(process_state=StepState.ERROR).order_by("id")


def mend() -> None:
    """Resubmit the first step in error, as an operator does."""
    if step := in_error().first():
        resubmit.resubmit(step.id, attempt=step.attempt, actor="olga", reason="mended")


def mend_by_hand() -> None:
    """Do the first step in error that is not in doubt by hand, if it can be, as an operator does."""
    without_children = in_error().exclude(flow__has_key="workflow")
    if step := without_children.filter(in_doubt=False).first():
        done_by_hand(step)


def done_by_hand(step: Step) -> None:
    """Do a step in error by hand: no effect of it is known, or that of what it undoes is none either."""
    if step.direction == Direction.DO or step.error_code == "done_by_hand":
        resubmit.done_by_hand(
            step.id, attempt=step.attempt, actor="olga", reason="by hand", result={"id": "by hand"}
        )


def undo_task(reference: str) -> None:
    """Undo a task, as an operator does."""
    if task := Task.objects.filter(reference=reference).first():
        undo.undo(task.id, actor="olga", reason="wrong", seen=[task.state])


def undo_child(number: int) -> None:
    """Undo one of the children, as an operator does."""
    if children := list(Task.objects.filter(parent__isnull=False).order_by("id")):
        child = children[number % len(children)]
        undo.undo(child.id, actor="olga", reason="not this one", seen=[child.state])


def hold(reference: str) -> None:
    """Hold a task, as an operator does."""
    if task := Task.objects.filter(reference=reference).exclude(state__in=ENDED).first():
        holds.hold(actor="olga", reason="wait", task=task.id)


def release() -> None:
    """End the first hold, as an operator does."""
    if held := Hold.objects.filter(until=None).order_by("id").first():
        holds.release(held.id, actor="olga", reason="go on")


def prioritize(reference: str, value: int) -> None:
    """Give a task another priority, as an operator does."""
    if task := Task.objects.filter(reference=reference).first():
        priority.prioritize(task.id, value, actor="olga", reason="urgent", seen=task.priority)


ENDED = (TaskState.PROCESSED, TaskState.UNDONE)
