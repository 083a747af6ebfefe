"""The state store of a simulation: it writes what the pure core decides, and checks each write."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from zlib import crc32

from orchestration.decisions import compensation
from orchestration.decisions.compensation import UndoPlan
from orchestration.decisions.gate import GateView
from orchestration.decisions.progress import Refusal, StepPlan, StepView, after_reply, task_state
from orchestration.decisions.readiness import Follows, release, value_of
from orchestration.payloads.keys import step_key
from orchestration.payloads.placeholders import Unresolved
from orchestration.states import (
    FINAL_TASK_STATES,
    LOCAL,
    SATISFIED_STEP_STATES,
    STEP_MOVES,
    TASK_MOVES,
    Direction,
    GateState,
    Outcome,
    StepState,
    TaskState,
)
from orchestration.transitions.first_steps import first_steps
from orchestration.workflows.workflow import Workflow

from .services import require
from .shapes import compute

BEGUN = datetime(2000, 1, 1, tzinfo=UTC)
SATISFIED = frozenset(SATISFIED_STEP_STATES)
MOVING = frozenset({StepState.PENDING, StepState.PROCESSING})


@dataclass(frozen=True, kw_only=True, slots=True)
class SimReport:
    """How something that was accepted has ended, as its service reports it."""

    id: str
    of: str
    task: str
    step: str
    outcome: str
    result: dict[str, Any]
    code: str

    @property
    def names_no_step(self) -> bool:
        """Whether it comes by the service's own id alone, as the webhooks of half of all do."""
        return crc32(self.of.encode()) % 2 == 0


@dataclass(kw_only=True, slots=True)
class Row:
    """A step's row: what decisions see, and what they do not."""

    view: StepView
    action: str
    failure_count: int = 0
    extended_waits: int = 0
    isolated: bool = False
    run_after: float | None = None
    complete_by: float | None = None
    probing_outcome: bool = False
    keyed_at: float | None = None
    resolve_by: float | None = None
    doubtful: set[int] = field(default_factory=set)  # attempts that may have had their effect
    # since it was last tried anew, of those after its service answered others
    own_failures: int = 0
    sent_by: tuple[int, float] = (0, 0.0)  # its agent's worker as it was claimed
    idle: int = 0  # looks since which it could have been claimed, and was not
    sent_at: float = 0.0
    failed_at: float | None = None
    retry_after: float = 0.0
    code: str = ""
    external_id: str = ""  # what its service calls what it accepted
    ends_by: float | None = None  # while it awaits its result
    begins_at: float | None = None  # while it waits for its time
    begun: bool = False  # that has come
    ended_at: float = 0.0

    @property
    def key(self) -> str:
        view = self.view
        return step_key(view.task, view.name, view.direction, view.generation)


@dataclass(kw_only=True, slots=True)
class SimTask:
    """A task's row, and its steps'."""

    id: str
    data: dict[str, Any]
    state: str = TaskState.PENDING
    undoing: bool = False
    forced: bool = False
    rows: dict[int, Row] = field(default_factory=dict)
    parent: int = 0  # the step whose child it is, and the position of its item there
    position: int = 0
    result: Any = None  # of a child: a template until it is processed, then its value if it has one

    @property
    def reference(self) -> str:
        """What people call it."""
        return self.id

    @property
    def undo_at(self) -> datetime | None:
        """When its undo began: for decisions, which only ask whether."""
        return BEGUN if self.undoing else None

    def views(self) -> list[StepView]:
        return [row.view for row in self.rows.values()]


class Store:
    """All tasks, steps and gates. One method is one transaction."""

    def __init__(
        self,
        agents: Iterable[str],
        now: Callable[[], float],
        *,
        settle_first: bool = True,
        in_time: bool = True,
        below: bool = True,
    ) -> None:
        self.now, self.in_time, self.below = now, in_time, below
        self.tasks: dict[str, SimTask] = {}
        self.rows: dict[int, Row] = {}
        self.of_agent: dict[str, list[Row]] = {agent: [] for agent in (*agents, LOCAL)}
        self.gates = {agent: GateView() for agent in self.of_agent if agent != LOCAL}
        self.answered: set[tuple[int, int]] = set()
        self.settle_first = settle_first
        self.touched: set[str] = set()
        self.reports: dict[int, SimReport] = {}  # what came before it was awaited, by step
        self.heard: set[str] = set()  # reports, by their ids
        self.accepted: set[str] = set()  # the services' own ids of what they accepted
        self.kept: dict[str, list[SimReport]] = {}  # what came before its id was accepted
        self.late: set[str] = set()  # keys under which an effect showed that counted nowhere
        self.late_tasks: set[str] = set()  # their tasks
        self.child_ended: Callable[[SimTask], None] = lambda _child: None
        self.alarms: dict[tuple[str, str], Any] = {}  # late effects, by agent and key: what counts

    def submit(self, task: str, workflow: Workflow, **data: Any) -> None:
        """Record a task and its steps in one operation."""
        data = {"order": task, "yes": True, "no": False, "note": "first", **data}
        self.add(SimTask(id=task, data=data), workflow)

    def add(self, task: SimTask, workflow: Workflow) -> None:
        """Record a task to be."""
        self.tasks[task.id] = task
        plans = first_steps(workflow, task.data, task.id)
        self._add(task, [replace(plan, until=None) for plan in plans])
        self._write_follows(task)  # by the time of this world
        task.state = task_state(TaskState.PENDING, task.views(), undoing=False)
        self._end_child(task)

    def _add(self, task: SimTask, plans: Iterable[StepPlan]) -> None:
        self.touched.add(task.id)
        for plan in plans:
            view = StepView(
                id=len(self.rows) + 1,
                task=task.id,
                name=plan.name,
                agent=plan.agent,
                state=plan.state,
                after=plan.after,
                attempt=0,
                locked_by=None,
                request=plan.request,
                result=None,
                direction=plan.direction,
                undo_action=plan.undo_action,
                undo_request=plan.undo_request,
                irreversible=plan.irreversible,
                flow=plan.flow,
            )
            row = self.rows[view.id] = task.rows[view.id] = Row(view=view, action=plan.action)
            self.of_agent[view.agent].append(row)

    def write(self, row: Row, view: StepView) -> None:
        """Write a step; what leaves a state takes that state's columns with it."""
        old = row.view
        require(
            view.state == old.state or view.state in STEP_MOVES[StepState(old.state)],
            f"step {old.id} {old.name} may not move {old.state} → {view.state}",
        )
        require(view.attempt >= old.attempt, f"step {old.id}: its attempt falls")
        if view.state != StepState.PROCESSING:
            row.complete_by = None
            view = view.altered(locked_by=None)
        if view.state != StepState.PENDING:
            row.run_after = None
        if view.state != StepState.ERROR:
            row.resolve_by = None
        if view.state != StepState.AWAITING:
            row.ends_by = None
        if view.state != StepState.WAITING:
            row.begins_at = None
        row.ended_at = self.now()
        row.idle = 0
        row.view = view
        self.touched.add(view.task)

    def accept(self, row: Row, view: StepView, attempt: int) -> None:
        """Write what a reply to `attempt` says: once per attempt, and for the last one only."""
        step = row.view
        require(attempt == step.attempt, f"step {step.id}: a reply to {attempt} is accepted late")
        require((step.id, attempt) not in self.answered, f"step {step.id}: {attempt} ends twice")
        self.answered.add((step.id, attempt))
        if view.outcome in {Outcome.EXPIRED, Outcome.UNKNOWN}:
            row.doubtful.add(attempt)
        self.write(row, view)

    def compute(self, row: Row, *, fails: bool) -> None:
        """Compute a step that needs no agent, and what follows: no one sees it processing."""
        task = self.tasks[row.view.task]
        view = row.view.altered(state=StepState.PROCESSING, attempt=row.view.attempt + 1)
        self.write(row, view)
        self.settle_claimed(task.id)
        outcome, made = Outcome.REJECTED, {}
        if not fails:
            outcome, made = Outcome.DONE, compute(dict(view.request))
        row.code = "compute_failed" if fails else ""
        after = after_reply(view, outcome, made, undoing=task.undoing, code=row.code)
        self.accept(row, after, view.attempt)
        self.finish(task)

    def error(self, row: Row, code: str, resolve_by: float | None = None) -> None:
        """Set a step to error, with something for an operator to see."""
        row.code, row.resolve_by = code, resolve_by
        self.write(row, row.view.altered(state=StepState.ERROR))

    def pend(self, row: Row, *, new_key: bool = False) -> None:
        """Make a failed step pending again."""
        view = row.view.altered(state=StepState.PENDING)
        if new_key:
            row.keyed_at = None
            view = view.altered(generation=view.generation + 1, in_doubt=False)
        self.write(row, view)

    def start_anew(self, row: Row) -> None:
        """Reset a step's failures, because a person resubmits it."""
        row.failure_count = row.extended_waits = row.own_failures = 0
        row.failed_at, row.isolated = None, False
        row.view = row.view.altered(own_trouble=False)

    def finish(self, task: SimTask) -> None:
        """Write what follows for the rest of a task."""
        self._write_follows(task)
        self.settle(task, task_state(task.state, task.views(), undoing=task.undoing))

    def _write_follows(self, task: SimTask) -> None:
        follows = self._follows(task)
        for item in follows.released:
            row = task.rows[item.id]
            self.write(row, row.view.altered(state=StepState.PENDING, request=item.request))
        for problem in follows.broken:
            self.error(task.rows[problem.id], problem.code)
        for step in follows.needless:
            self.cancel(task.rows[step])
        for step in follows.skipped:
            self.write(task.rows[step], task.rows[step].view.altered(state=StepState.SKIPPED))

    def _follows(self, task: SimTask) -> Follows:
        """Return what follows, and note which steps have to wait for their time."""
        times = {} if self.in_time else dict.fromkeys(task.rows, True)
        while True:
            for number, row in task.rows.items():
                if row.begins_at is not None:
                    times[number] = row.begun
            follows = release(task.views(), task.data, undoing=task.undoing, times=times)
            if not follows.untimed:
                return follows
            for number in follows.untimed:
                flow = task.rows[number].view.flow
                task.rows[number].begins_at = self.now() + (flow.not_before if flow else 0.0)

    def begin(self, row: Row) -> None:
        """Have a step begin whose time has come, if it still waits for that."""
        if row.begins_at is not None:
            row.begun = True
            self.finish(self.tasks[row.view.task])

    def settle(self, task: SimTask, state: TaskState) -> None:
        """Write a task's state."""
        if task.state == TaskState.PENDING and state == TaskState.PROCESSED:
            task.state = TaskState.PROCESSING  # what is left of it is not needed
        if state != task.state:
            allowed = TASK_MOVES[TaskState(task.state)]
            require(state in allowed, f"task {task.id} may not move {task.state} → {state}")
            task.state = state
            self._end_child(task)

    def _end_child(self, task: SimTask) -> None:
        """Note what a child comes to that has ended, and tell of its end."""
        if not task.parent or task.state not in FINAL_TASK_STATES:
            return
        if task.state == TaskState.PROCESSED:
            try:
                task.result = value_of(task.result, task.views(), task.data)
            except Unresolved:
                task.result = None
        self.child_ended(task)

    def settle_claimed(self, task: str) -> None:
        """Begin a task whose first step is claimed."""
        if self.tasks[task].state == TaskState.PENDING:
            self.settle(self.tasks[task], TaskState.PROCESSING)

    def cancel(self, row: Row) -> None:
        """Cancel a step."""
        accepted = row.view.outcome == Outcome.LATER
        doubt = row.view.in_doubt and not accepted
        self.write(row, row.view.altered(state=StepState.CANCELLED, in_doubt=doubt))

    def undo(self, task: SimTask, *, forced: bool = False) -> Refusal | None:
        """Begin to undo a task; return why not, or None."""
        if task.undoing or task.state == TaskState.UNDONE:
            return Refusal.NOT_UNDOABLE
        plan = compensation.plan(task.views())
        if not self.below:
            plan = _of_ended_only(plan, self.does(task))
        if plan.standing and not forced:
            return Refusal.IRREVERSIBLE
        task.undoing, task.forced = True, bool(plan.standing)
        for step in plan.cancel:
            self.cancel(task.rows[step])
        for step in plan.settle:
            self._settle_step(task.rows[step])
        self._add(task, plan.undo)
        self.settle(task, TaskState.UNDOING)
        self.finish(task)
        return None

    def _settle_step(self, row: Row) -> None:
        row.probing_outcome, row.run_after = True, None
        if not self.settle_first and row.view.locked_by is None:
            self.cancel(row)
        elif row.view.state == StepState.ERROR:
            self.start_anew(row)
            self.pend(row)

    def detect_late_effects(
        self,
        row: Row,
        attempt: int,
        outcome: str,
        result: dict[str, Any],
        generation: int,
        in_doubt: bool | None,
    ) -> None:
        """Act on a reply that changes no step any more."""
        view, task = row.view, self.tasks[row.view.task]
        if not compensation.shows_effect(outcome, in_doubt):
            return
        if compensation.will_reveal_effect(view, generation):
            if outcome != Outcome.DONE and not view.in_doubt and attempt in row.doubtful:
                return  # that was known, and settled since under the same key
            row.view = compensation.proven(view)
            return
        if compensation.was_accepted(view, outcome, generation):
            return
        shown = result if outcome in {Outcome.DONE, Outcome.LATER} else None
        if shown is None and generation < view.generation and attempt in row.doubtful:
            return  # that was known, and settled, before the key changed
        late = compensation.late_effect(
            view, task.views(), task.data, result=shown, generation=generation
        )
        if late is None:
            return
        self.late_tasks.add(task.id)
        self.late.add(step_key(view.task, view.name, view.direction, generation))
        if late.request is None:
            key = step_key(view.task, view.name, view.direction, generation)
            counts = view.state == StepState.PROCESSED and generation == view.generation
            self.alarms[view.agent, key] = (view.result or {}).get("id") if counts else None
        elif late.undo is None:
            plan = StepPlan(
                name=view.name, agent=view.agent, action="undo", after=(), request=late.request,
                state=StepState.PENDING, direction=Direction.UNDO,
            )  # fmt: skip
            self._add(task, [plan])
        else:
            again = late.undo.altered(state=StepState.PENDING, request=late.request)
            self.write(task.rows[late.undo.id], again)
        self.finish(task)

    def in_flight(self, agent: str) -> list[Row]:
        """Return the steps that an agent has at work."""
        return [row for row in self.of_agent[agent] if row.view.locked_by is not None]

    def due(self, agent: str) -> list[Row]:
        """Return the steps that wait for an agent, and not for their time."""
        return [
            row
            for row in self.of_agent[agent]
            if row.view.state == StepState.PENDING and row.run_after is None
        ]

    def since_opened(self, agent: str) -> int:
        """Return how many requests are out; unless all is well, of those since the breaker opened."""
        door, rows = self.gates[agent], self.in_flight(agent)
        if door.state == GateState.CLOSED or door.opened_at is None:
            return len(rows)
        return sum(row.sent_at >= door.opened_at for row in rows)

    def does(self, task: SimTask) -> dict[str, Row]:
        """Return the steps that do the work, by name."""
        rows = task.rows.values()
        return {row.view.name: row for row in rows if row.view.direction == Direction.DO}


def _of_ended_only(plan: UndoPlan, does: Mapping[str, Row]) -> UndoPlan:
    """Return a plan that leaves alone the children of steps that have not ended."""
    views = {name: row.view for name, row in does.items()}
    undo = [
        step
        for step in plan.undo
        if not views[step.name].makes_children or views[step.name].state == StepState.PROCESSED
    ]
    return replace(plan, undo=tuple(undo))
