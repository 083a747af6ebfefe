"""A run of workflows in one process: the real engine and database, scripted services, a fake clock."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch
from uuid import uuid4

from asgiref.sync import async_to_sync

from .. import conf, registry, scheduler, submission, supervisor, task_requests
from ..agents.base import Agent
from ..agents.webhook import Reported, Webhook
from ..applications import status_messages
from ..applications.hooks import take
from ..applications.requests import complete
from ..applications.submissions import Posting, submit_many
from ..cluster import leader_election
from ..cluster.debounce import Pauses
from ..cluster.leader_election import HOUSEKEEPER, SUPERVISOR, Leadership
from ..cluster.leader_memory import Memory
from ..database import sql
from ..housekeeping import agent_rows, housekeeper
from ..messaging import queue_names, queues
from ..messaging.messages import Reply, Request
from ..models import Policy, StepPolicy, Worker
from ..workers import scheduler_duties
from .doubles import ASKED, Called, Double, Script, called, double, without_waiting
from .fake_clock import FakeClock, frozen
from .inboxes import Inboxes, in_memory
from .moments import NEXT
from .outcomes import Scripted
from .task_view import TaskView

HERE = "testing"  # the host of the run's workers
MOST_ROUNDS = 1000  # at one moment: more is a circle
MOST_JUMPS = 200  # of a run to the end: more is a service that fails without end
WEEK = timedelta(days=7)
# Budgets of real time, which must not run out because the machine is busy.
BUDGETS = ("COMPUTE_BUDGET_S", "DUTY_BUDGET_S", "OPERATIONS_BUDGET_S", "SLOW_LOOK_S")


class Run:
    """What happens in a test: `script` outcomes, submit a task, `go`, let time pass, look at `calls`.

    Submissions, schedulers, agents, the supervisor, the housekeeper and receivers of status messages are
    driven in this process. Nothing happens between two calls of these methods, and time stands still
    within each but for the moves that it names.
    """

    def __init__(self, clock: FakeClock, inboxes: Inboxes) -> None:
        self.clock = clock
        self._inboxes = inboxes
        self._script = Script()
        self._calls: list[Called] = []
        self._doubles: dict[str, Double] = {}
        self._real: dict[str, type[Agent]] = {}
        self._late: list[tuple[datetime, Reply]] = []
        self._memories = {SUPERVISOR: Memory(), HOUSEKEEPER: Memory()}
        self._gate_at: datetime | None = None
        Pauses.end_all()
        agent_rows.ensure()
        self._staff()
        self._sweep()  # a leader's first look takes everything before it for lost

    def script(self, name: str, *outcomes: Scripted, reference: str | None = None) -> None:
        """Say what the service does with the calls of an action ("agent.action"), one after the other.

        The last outcome stays. With `reference` it holds for one task. An action without a script is done.
        A repeat under a key that had its effect gets the first result, and takes no outcome.
        """
        self._script.set(name, outcomes, reference)

    def answer(self, name: str, *outcomes: Scripted, reference: str | None = None) -> None:
        """Say what the service answers as it is asked about what it accepted (`later`), as in `script`."""
        self._script.set(name + ASKED, outcomes, reference)

    def complete(
        self,
        task: TaskView,
        step: str,
        result: Mapping[str, Any] | None = None,
        *,
        refused: str = "",
        actor: str = "test",
    ) -> None:
        """Report how a step ends that awaits a service, a person or a signal; the next `go` records it."""
        known: dict[str, Any] = {"refused": refused, "actor": actor, "id": uuid4()}
        complete(task.workflow, task.reference, step, result=result, **known)

    def receive(self, agent: str, webhook: Webhook) -> list[Reported]:
        """Have an agent's `receive` take a webhook; the next `go` records what it reports.

        Returns that, and raises what `receive` raises. `webhooks` makes signed ones.
        """
        return take(registry.get(registry.agents, "agent", agent), webhook)

    def real(self, name: str, agent: type[Agent] | None = None) -> None:
        """Have the agent's own code perform its requests, or that of another class.

        That takes real time, while the fake clock stands still. Code that asks for the thread of its
        caller (`sync_to_async`), such as Django's asynchronous database interface, has that of the test.
        """
        self._real[name] = agent or registry.get(registry.agents, "agent", name)

    def policy(self, agent: str, **thresholds: Any) -> None:
        """Change thresholds of an agent's policy, such as `tries=1`."""
        registry.get(registry.agents, "agent", agent)
        Policy.objects.filter(agent=agent).update(**thresholds)

    def step_policy(self, workflow: str, step: str, **thresholds: Any) -> None:
        """Change thresholds that a step has for itself, such as `failure_threshold=2`; None: its agent's."""
        if not StepPolicy.objects.filter(workflow=workflow, step=step).update(**thresholds):
            raise LookupError(f"no step {step!r} of a workflow {workflow!r} calls an agent")

    def submit(
        self,
        workflow: str,
        data: Mapping[str, Any] | None = None,
        *,
        reference: str | None = None,
        **options: Any,
    ) -> TaskView:
        """Post a task as `api.submit` does; the next `go` takes it."""
        reference = reference or uuid4().hex
        submit_many(
            [Posting(workflow=workflow, reference=reference, data=dict(data or {}), **options)]
        )
        return self.task(workflow, reference)

    def task(self, workflow: str, reference: str) -> TaskView:
        """Return a view of a task, whether it exists yet or not."""
        return TaskView(workflow=workflow, reference=reference, run_calls=self._calls)

    def calls(self, name: str, *, asked: bool = False) -> list[Called]:
        """Return the calls of an action ("agent.action"), or the questions about it, in their order."""
        return [call for call in self._calls if (call.name, call.asked) == (name, asked)]

    def go(self) -> None:
        """Do all that is due now, and what follows from it, until only time brings more."""
        for _ in range(MOST_ROUNDS):
            if not self._work() and not self._sweep():
                return
        raise AssertionError(f"after {MOST_ROUNDS} rounds there is still something to do")

    def next_moment(self, *, scheduled: bool = False) -> datetime | None:
        """Return when time alone brings something, also by a schedule if `scheduled`; None if nothing."""
        ((at,),) = sql.run(NEXT, {"receivers": list(registry.receivers), "scheduled": scheduled})
        moments = [at, self._gate_at, *(late_at for late_at, _ in self._late)]
        return min((moment for moment in moments if moment is not None), default=None)

    def jump(self) -> float:
        """Go, jump to the next due moment, and go; return the seconds between, 0.0 if there is none."""
        self.go()
        at = self.next_moment()
        return self._jump_to(at) if at else 0.0

    def wait(self, seconds: float) -> None:
        """Let time pass, and do at each due moment what is due then; schedules submit their tasks."""
        self.go()
        until = self.clock.now + timedelta(seconds=seconds)
        while (at := self.next_moment(scheduled=True)) and at <= until:
            self._jump_to(at)
        self._jump_to(until)

    def finish(self, within: timedelta = WEEK) -> None:
        """Jump from due moment to due moment until time brings nothing more, or `within` has passed.

        Due times of schedules are passed over, as there is no end of them.
        """
        until = self.clock.now + within
        self.go()
        for _ in range(MOST_JUMPS):
            at = self.next_moment()
            if at is None or at > until:
                return
            self._jump_to(at)
        raise AssertionError(
            f"after {MOST_JUMPS} jumps more is due, at {self.next_moment()}. Does a service fail without "
            "end? Then let some time pass by `wait`."
        )

    def _jump_to(self, moment: datetime) -> float:
        before = self.clock.now
        self.clock.move_to(moment)
        self._staff()
        self.go()
        return (moment - before).total_seconds()

    def _work(self) -> int:
        """Take submissions and requests, schedule, call agents; return how much was done."""
        size = conf.BATCH_SIZE
        done = submission.take(size) + task_requests.take(size).done
        done += sum(self._perform(agent) for agent in registry.agents)
        self._gate_at = None
        replies = [*self._late_replies(), *self._inboxes.take(queues.SCHEDULER, size)]
        result = scheduler.run_once(f"scheduler@{HERE}", replies, scheduler.all_agents())
        done += len(replies) + len(result.more) + len(scheduler_duties.run().more)
        if result.again_in is not None:
            pause = max(result.again_in, conf.TURN_INTERVAL_S)
            self._gate_at = self.clock.now + timedelta(seconds=pause)
        done += len(self._inboxes.waiting(list(registry.agents)))
        waiting = {name for name, _ in status_messages.waiting(-1)}  # those of this moment, too
        receivers = waiting & registry.receivers.keys()
        return done + sum(status_messages.deliver(name, size) for name in sorted(receivers))

    def _late_replies(self) -> list[bytes]:
        """Return the replies whose time has come, after a sweep at that time."""
        now = self.clock.now
        due = [reply for at, reply in self._late if at <= now]
        if due:
            self._sweep()
        self._late = [(at, reply) for at, reply in self._late if at > now]
        return [reply.altered(ended=now.timestamp()).dump() for reply in due]

    def _perform(self, agent: str) -> int:
        """Have an agent perform the requests in its inbox; return how many."""
        requests = self._inboxes.take(agent, conf.BATCH_SIZE)
        for raw in requests:
            reply = self._answer(agent, Request.parse(raw))
            if reply is not None:
                self._inboxes.ring_all({queues.SCHEDULER: [reply.dump()]})
        return len(requests)

    def _answer(self, name: str, request: Request) -> Reply | None:
        """Return the reply that comes in time; keep a late one for later."""
        at = self.clock.elapsed
        if kind := self._real.get(name) or registry.agents[name].in_tests:
            real = kind(f"{name}@{HERE}")
            self._calls += called(name, request, [(real.as_call(request), False)], at)
            return async_to_sync(_answer_and_close)(real, request)
        if name not in self._doubles:
            self._doubles[name] = double(registry.agents[name], self._script)
        agent = self._doubles[name]
        reply = without_waiting(agent.answer(request))
        self._calls += called(name, request, agent.calls, at)
        agent.calls.clear()
        if reply is None or not agent.delivery.replies:
            return None
        if agent.delivery.late_by is not None:
            due = datetime.fromtimestamp(request.complete_by, self.clock.now.tzinfo)
            self._late.append((due + timedelta(seconds=agent.delivery.late_by), reply))
            return None
        return reply

    def _sweep(self) -> bool:
        """Run a sweep of the supervisor and of the housekeeper; return whether they did anything."""
        recovered = supervisor.sweep(
            self._lead(SUPERVISOR), self._memories[SUPERVISOR], chance=lambda: 1.0
        )
        kept_house = housekeeper.sweep(self._lead(HOUSEKEEPER), self._memories[HOUSEKEEPER])
        return bool(str(recovered) or str(kept_house))

    def _lead(self, name: str) -> Leadership:
        leadership = leader_election.acquire(f"{name}@{HERE}", name=name)
        assert leadership is not None, f"another {name} leads"
        return leadership

    def _staff(self) -> None:
        """Have a living worker on every queue, so that no agent counts as unserved."""
        Worker.objects.bulk_create(
            [
                Worker(instance=f"{queue}@{HERE}", queue=queue, host=HERE, pid=1)
                for queue in queue_names.declared()
            ],
            update_conflicts=True,
            unique_fields=["instance"],
            update_fields=["seen_at"],
        )


async def _answer_and_close(agent: Agent, request: Request) -> Reply | None:
    try:
        return await agent.answer(request)
    finally:
        await agent.close()


@contextmanager
def running() -> Iterator[Run]:
    """Give a run; the clock stands still and Redis is not asked in this block."""
    with frozen() as clock, in_memory() as inboxes, _without_budgets():
        yield Run(clock, inboxes)


@contextmanager
def _without_budgets() -> Iterator[None]:
    with ExitStack() as stack:
        for name in BUDGETS:
            stack.enter_context(patch.object(conf, name, 600.0))
        yield
