"""Schedulers and the supervisor: they act on the pure decisions, and die at any point."""

from dataclasses import replace

from orchestration.decisions import gate
from orchestration.decisions.gate import Observation
from orchestration.decisions.joining import concern
from orchestration.decisions.progress import Refusal, StepView, after_reply, refuse_reply
from orchestration.decisions.recovery import Cancel, Failure, GiveUp, Retry, Undo, decide
from orchestration.messaging.messages import Mode
from orchestration.states import (
    ANSWERED,
    LOCAL,
    GateState,
    Health,
    OnRejection,
    Outcome,
    StepState,
)

from .agents import Agents, SimReply, SimRequest
from .children import Children
from .services import require
from .shapes import ENDS_WITHIN, MEND_WITHIN, TIME_ALLOWED
from .store import Row, SimReport, SimTask
from .world import World

LOOK = 4.0  # seconds between two questions about what was accepted
TO_COME = frozenset({StepState.WAITING, StepState.PENDING, StepState.PROCESSING, StepState.ERROR})


class Schedulers:
    """Any number of schedulers: a turn records what came in and claims what may go."""

    def __init__(self, world: World) -> None:
        self.world, self.store = world, world.store
        self.agents = Agents(world, self.hear)
        self.children = Children(world, self._rejected)
        self.inbox: list[SimReply] = []
        self.stopped_until = 0.0
        self._rung = False
        world.hear_report = self.report

    def hear(self, reply: SimReply) -> None:
        """Put a reply on the schedulers' inbox."""
        self.inbox.append(reply)
        self.ring()

    def ring(self) -> None:
        """Call a scheduler, unless one is on its way."""
        if not self._rung:
            self._rung = True
            self.world.after(self.world.chance(0.01, 0.1), self.turn)

    def turn(self) -> None:
        """Record all replies, then claim for all agents."""
        self._rung = False
        if self.world.now < self.stopped_until:
            return  # the supervisor rings again
        if self.world.stuck():
            self.ring()
            return
        replies, self.inbox = self.inbox, []
        if replies and self.world.hit("record_crash"):
            return
        for reply in replies:
            self.record(reply)
        if self.compute() and self.children.look():
            self._claim_all()

    def _claim_all(self) -> None:
        for agent in self.world.agents:
            if not self.store.due(agent):
                continue
            if "lock" in self.world.broken:  # two look, before either of them takes
                for _ in range(2):
                    places = self.places(agent)
                    self.world.after(self.world.chance(0.0, 0.1), self._take, agent, places)
            else:
                self._take(agent, self.places(agent))

    def compute(self) -> bool:
        """Do what needs no agent, and what becomes due by that; return False if the process dies at it."""
        while due := [row for row in self.store.due(LOCAL) if self.claimable(row)]:
            if concern(due[0].view):
                if not self.children.begin(due[0]):
                    return False
                continue
            fails = self.world.hit("refused")
            self.world.log("compute {}{}", due[0].key, ": it fails" * fails)
            self.store.compute(due[0], fails=fails)
        return True

    def record(self, reply: SimReply) -> None:
        """Record one reply, or refuse it."""
        world, store = self.world, self.store
        row = store.rows[reply.step]
        task = store.tasks[row.view.task]
        if world.locked("task", task.id):
            world.posted += 1
            world.after(1.0, self._back, reply)
            return
        world.heard(reply.key, (reply.attempt, reply.taken), reply.outcome)
        refusal = refuse_reply(row.view, reply.attempt, reply.generation)
        if refusal is Refusal.OTHER_ATTEMPT and "fence" in world.broken:
            refusal = None
        world.log("reply to {} #{}: {} {} {}", row.key, reply.attempt, reply.outcome, reply.code,
                  f"refused: {refusal.value}" if refusal else "")  # fmt: skip
        if refusal:
            if "late" not in world.broken:
                store.detect_late_effects(
                    row, reply.attempt, reply.outcome, reply.result, reply.generation,
                    reply.in_doubt,
                )  # fmt: skip
            return
        row.code = reply.code
        view = after_reply(
            row.view, reply.outcome, reply.result,
            undoing=task.undoing, in_doubt=reply.in_doubt, code=reply.code,
        )  # fmt: skip
        view = self._pass_in_doubt(view)
        if reply.health == Health.NOTHING and view.state == StepState.PROCESSING:
            view = view.altered(own_trouble=True)
        row.complete_by = world.now
        store.accept(row, view, reply.attempt)
        row.retry_after = reply.retry_after or 0.0
        if not (view.own_trouble and view.state == StepState.PROCESSING):
            health = reply.health or (Health.GOOD if reply.outcome in ANSWERED else Health.BAD)
            heard = Observation(health=health, sent_at=row.sent_at, retry_after=reply.retry_after)
            self._update_gate(view.agent, heard)
            if reply.outcome in ANSWERED:
                world.answered[view.agent] = max(world.answered[view.agent], row.sent_at)
        self._follow(row, task)

    def _follow(self, row: Row, task: SimTask) -> None:
        """Write what follows as an attempt has ended."""
        if row.view.state == StepState.ERROR and not task.undoing:
            self._rejected(row, task)
        elif row.view.state == StepState.AWAITING:
            self._await(row)
        self.store.finish(task)

    def _await(self, row: Row) -> None:
        """Await what a service accepted; it may have been reported already."""
        world, view = self.world, row.view
        within = view.flow.ends_within if view.flow else None
        row.ends_by = world.now + (within or ENDS_WITHIN)
        row.external_id = str((view.result or {})["id"])
        store = self.store
        store.accepted.add(row.external_id)
        for early_report in store.kept.pop(row.external_id, ()):
            world.posted += 1
            world.after(0.0, self._again, early_report)
        if world.rules(view.agent).can_ask and world.of_flows.random() < 0.5:
            world.after(LOOK, self._look, row, row.external_id)
        early = store.reports.pop(view.id, None)
        if early is not None and early.of == row.external_id:
            self._end(row, early)

    def _look(self, row: Row, external_id: str) -> None:
        """Ask a service for the result of what it accepted; a look may fail."""
        world = self.world
        if row.view.state != StepState.AWAITING or row.external_id != external_id:
            return
        world.after(LOOK, self._look, row, external_id)
        if world.of_flows.random() < 0.2 or world.locked("task", row.view.task):
            return
        outcome, result, code = world.services[row.view.agent].ask(row.key, close=False)
        if outcome in {Outcome.DONE, Outcome.REJECTED}:
            report = SimReport(
                id="look", of=external_id, task=row.view.task, step=row.view.name,
                outcome=outcome, result=result, code=code,
            )  # fmt: skip
            self._end(row, report)

    def report(self, report: SimReport) -> None:
        """Hear how something has ended that was accepted: it may not be awaited yet, or any more."""
        world, store = self.world, self.store
        if report.names_no_step and report.of not in store.accepted:
            store.kept.setdefault(report.of, []).append(report)
            return
        if world.locked("task", report.task):
            world.posted += 1
            world.after(1.0, self._again, report)
            return
        contradicts = report.id != report.of and report.of not in store.heard
        if report.id in store.heard or contradicts:
            return  # what contradicts comes after what is true
        store.heard.add(report.id)
        task = store.tasks[report.task]
        row = store.does(task)[report.step]
        if row.view.state == StepState.AWAITING:
            if "of" in world.broken or report.of == row.external_id:
                self._end(row, report)
        elif row.view.state in TO_COME and not task.undoing:
            store.reports.setdefault(row.view.id, report)

    def _again(self, report: SimReport) -> None:
        self.world.posted -= 1
        self.report(report)

    def _end(self, row: Row, report: SimReport) -> None:
        """Write how a step has ended that awaited its result, and what follows."""
        task = self.store.tasks[row.view.task]
        self.world.log("report of {}: {} {}", row.key, report.outcome, report.code)
        row.code = report.code
        view = after_reply(
            row.view, report.outcome, report.result, undoing=task.undoing, in_doubt=False,
            code=report.code,
        )  # fmt: skip
        self.store.write(row, view)
        if view.state == StepState.ERROR and not task.undoing:
            self._rejected(row, task)
        self.store.finish(task)
        self.ring()

    def _pass_in_doubt(self, view: StepView) -> StepView:
        """Pass over a refusal though the step may have been done, if that guard is left out."""
        passes = view.flow is not None and view.flow.passes(view.error_code)
        if "pass" in self.world.broken and passes and view.state == StepState.ERROR:
            return view.altered(state=StepState.SKIPPED, in_doubt=False)
        return view

    def _back(self, reply: SimReply) -> None:
        """Deliver a reply again whose task was locked."""
        self.world.posted -= 1
        self.hear(reply)

    def _rejected(self, row: Row, task: SimTask) -> None:
        """Do with the task of a refused step what the policy says."""
        world = self.world
        flow, agent = row.view.flow, row.view.agent
        policy = world.rules(agent).on_rejection if agent else OnRejection.ERROR
        match (flow and flow.on(row.code)) or policy:
            case OnRejection.WAIT:
                row.resolve_by = world.now + MEND_WITHIN
            case OnRejection.UNDO if world.keeps(row.view):
                row.resolve_by = world.now
            case OnRejection.UNDO:
                world.undo_by_itself(row)

    def _update_gate(self, agent: str, heard: Observation) -> None:
        limits = self.world.rules(agent).limits
        before = self.store.gates[agent]
        in_flight = len(self.store.in_flight(agent))
        after = gate.observe(before, limits, [heard], self.world.now, in_flight)
        self.store.gates[agent] = after
        if before.state != after.state:
            self.world.log("gate of {}: {} → {}", agent, before.state, after.state)

    def places(self, agent: str) -> int:
        """Return how many requests an agent's gate lets through now."""
        limits = self.world.rules(agent).limits
        door = self.store.gates[agent]
        return gate.room(door, limits, self.store.since_opened(agent), self.world.now)

    def _take(self, agent: str, places: int) -> None:
        """Claim at most `places` steps, and send their requests unless the process dies first."""
        if not places or self.world.locked("gate", agent):
            return
        claimed: list[Row] = []
        isolated = any(row.isolated for row in self.store.in_flight(agent))
        rows = self.store.due(agent)
        if self.store.gates[agent].state in {GateState.OPEN, GateState.HALF_OPEN}:
            rows.sort(key=_as_first if "turns" in self.world.broken else _as_probe)
        for row in rows:
            if len(claimed) < places and self.claimable(row) and not (isolated and row.isolated):
                claimed.append(row)
                isolated = isolated or row.isolated
        requests = [self._claim(row) for row in claimed]
        old, limits = self.store.gates[agent], self.world.rules(agent).limits
        self.store.gates[agent] = gate.sent(old, limits, len(claimed), self.world.now)
        if claimed:
            in_flight = self.store.in_flight(agent)
            require(len(in_flight) <= limits.window, f"{agent}: {len(in_flight)} in flight")
        if requests and self.world.hit("claim_crash"):
            return
        for request in requests:
            self.world.send("request", self.agents.receive, request)

    def claimable(self, row: Row) -> bool:
        """Return whether nothing keeps a step that is due from being claimed but its agent's gate."""
        view = row.view
        return not self.world.locked("task", view.task) and not self.world.held(view)

    def _claim(self, row: Row) -> SimRequest:
        world, view = self.world, row.view
        row.keyed_at = world.now if row.keyed_at is None else row.keyed_at
        row.complete_by = world.now + TIME_ALLOWED
        row.sent_at, row.sent_by = world.now, self.agents.worker(view.agent)
        memory = world.rules(view.agent).key_memory
        # a call may arrive until complete-by: the key must be known by then
        forgotten = (
            memory is not None
            and "memory" not in world.broken
            and row.complete_by > row.keyed_at + memory
        )
        mode = Mode.SETTLE if row.probing_outcome else Mode.DO
        if forgotten and view.in_doubt:
            mode = Mode.ASK
        view = view.altered(
            state=StepState.PROCESSING, attempt=view.attempt + 1, locked_by="scheduler", outcome=""
        )
        self.store.write(row, view)
        self.store.settle_claimed(view.task)
        key = f"{row.key}:{view.attempt}" if "key" in world.broken else row.key
        world.log("claim {} #{} to {}", key, view.attempt, mode)
        world.sent(key)
        return SimRequest(
            step=view.id, attempt=view.attempt, agent=view.agent, action=row.action,
            task=view.task, name=view.name, key=key, direction=view.direction,
            payload=view.request, complete_by=row.complete_by, mode=mode,
            generation=view.generation, in_doubt=view.in_doubt,
        )  # fmt: skip


def _as_first(row: Row) -> tuple[bool, int]:
    """Return an order in which one that always fails is always the first."""
    return row.view.own_trouble or row.isolated, -row.view.attempt


def _as_probe(row: Row) -> int:
    """Return the sort key of the next probe."""
    return row.view.attempt + gate.BEHIND * (row.view.own_trouble or row.isolated)


class Supervisor:
    """Sweeps the store every second: counts, retries, gives up, has tasks undone, wakes, rings."""

    def __init__(self, world: World, schedulers: Schedulers) -> None:
        self.world, self.store, self.schedulers = world, world.store, schedulers
        self.stopped_until = 0.0

    def sweep(self) -> None:
        """Look at everything once; a crash leaves the rest to the next sweep."""
        world = self.world
        world.after(1.0, self.sweep)
        if world.now < self.stopped_until or world.stuck():
            return
        due, late, begin = self._due()
        for row in due:
            if world.hit("sweep_crash"):
                return
            view = row.view
            locks = (("task", view.task), ("gate", view.agent), ("incident", view.name))
            if row.complete_by is not None and not any(world.locked(*lock) for lock in locks):
                self._recover(row)  # else an undo of its task came in between
        for row in (row for row in late if not world.locked("task", row.view.task)):
            if row.ends_by is not None:  # else an undo of its task came in between
                self._end_wait(row)
        for row in (row for row in begin if not world.locked("task", row.view.task)):
            self.store.begin(row)
        self._undo_overdue()
        waiting = self.schedulers.inbox or self.schedulers.children.looks
        if waiting or any(self.store.due(agent) for agent in (*world.agents, LOCAL)):
            self.schedulers.ring()

    def _due(self) -> tuple[list[Row], list[Row], list[Row]]:
        """Return the steps that have failed, are late, and begin; end waits for retries."""
        now, due, late, begin = self.world.now, [], [], []
        for row in self.store.rows.values():
            if row.complete_by is not None and row.complete_by <= now:
                due.append(row)
            elif row.run_after is not None and row.run_after <= now:
                row.run_after = None
            elif row.ends_by is not None and row.ends_by <= now:
                late.append(row)
            elif row.begins_at is not None and row.begins_at <= now:
                begin.append(row)
        return due, late, begin

    def _end_wait(self, row: Row) -> None:
        """Do what follows as a result is late: it may come still, so its step is in doubt."""
        world, store, view = self.world, self.store, row.view
        task = store.tasks[view.task]
        world.log("{} is late", row.key)
        accepted = view.agent != LOCAL and "accepted" not in world.broken
        row.view = view.altered(in_doubt=accepted, error_code="late")
        undo = view.flow is not None and view.flow.late == "undo"
        if undo and not world.keeps(view) and world.undo_by_itself(row):
            return
        store.error(row, "late", world.now if undo else None)
        store.finish(task)

    def _undo_overdue(self) -> None:
        """Undo tasks with a step whose time to be corrected is over."""
        world = self.world
        for row in list(self.store.rows.values()):
            due = row.resolve_by is not None and row.resolve_by <= world.now
            if not due or world.locked("task", row.view.task):
                continue
            row.resolve_by = None
            if world.keeps(row.view):
                row.resolve_by = world.now + 1.0
            else:
                world.undo_by_itself(row)

    def _recover(self, row: Row) -> None:
        world, store = self.world, self.store
        task = store.tasks[row.view.task]
        if row.view.locked_by is not None:
            row.code = "expired"
            view = row.view.altered(outcome=Outcome.EXPIRED, in_doubt=True, locked_by=None)
            store.accept(row, view, view.attempt)
            row.retry_after = 0.0
            alive = row.sent_by == self.schedulers.agents.worker(view.agent)
            if alive and not view.own_trouble:
                silence = Observation(health=Health.BAD, sent_at=row.sent_at)
                self.schedulers._update_gate(view.agent, silence)
        view = row.view
        rules, door = world.rules(view.agent), store.gates[view.agent]
        failed, before = view.outcome != Outcome.ABSENT, row.failed_at
        row.own_failures += failed and before is not None and before < world.answered[view.agent]
        own = view.own_trouble or (failed and gate.answered_since(door, before))
        own = own and "own" not in world.broken
        row.view = view = view.altered(own_trouble=own)
        row.failed_at = world.now if failed else None
        excused = not own and (gate.excuses(door) or row.retry_after > 0)
        failure = Failure(
            failure_count=row.failure_count, extended_waits=row.extended_waits, outcome=view.outcome,
            code=row.code, direction=view.direction, undoing=task.undoing,
            in_doubt=view.in_doubt, excused=excused, put_off=row.retry_after,
        )  # fmt: skip
        decision = decide(rules.thresholds, failure, world.rng.random())
        preserved = isinstance(decision, Undo) and world.keeps(view)
        if isinstance(decision, Undo) and not preserved and world.undo_by_itself(row):
            if row.complete_by is None:
                return  # nothing of it was done
            decision = decide(rules.thresholds, replace(failure, undoing=True), world.rng.random())
        world.log("{} #{} {} {}: {}", row.key, view.attempt, view.outcome, row.code, decision)
        self._apply(decision, row, world.now if preserved else None)
        store.finish(task)

    def _apply(
        self, decision: Retry | GiveUp | Undo | Cancel, row: Row, resolve_by: float | None
    ) -> None:
        match decision:
            case Retry():
                row.failure_count, row.extended_waits = (
                    decision.failure_count,
                    decision.extended_waits,
                )
                row.isolated = decision.isolated
                self.store.pend(row, new_key=decision.new_key)
                row.run_after = self.world.now + decision.wait
            case Cancel():
                self.store.cancel(row)
            case GiveUp() | Undo():  # what cannot be undone, or is held, is an error after all
                row.failure_count = decision.failure_count
                self.store.error(row, row.code or row.view.outcome, resolve_by)
