"""Operators: they undo, hold, release, resubmit, and mend by hand what nothing else can."""

from orchestration.decisions.joining import concern
from orchestration.decisions.recovery import KEY_FORGOTTEN, keeps_key, key_of_resubmission
from orchestration.states import LOCAL, Direction, Outcome, StepState

from .children import Children
from .shapes import compute
from .store import Row
from .world import World


class Operators:
    """People, who do what the dashboard lets them, at any moment."""

    def __init__(self, world: World, children: Children) -> None:
        self.world, self.store, self.children = world, world.store, children

    def undo(self, *, forced: bool) -> None:
        """Ask for some task to be undone."""
        if self.store.tasks:
            task = self.world.rng.choice(list(self.store.tasks.values()))
            if self.world.locked("task", task.id):
                return
            refusal = self.store.undo(task, forced=forced)
            self.world.log("operator: undo {}: {}", task.id, refusal or "begun")

    def undo_child(self) -> None:
        """Ask for a child to be undone by itself."""
        children = [task for task in self.store.tasks.values() if task.parent and not task.undoing]
        if children:
            child = self.world.of_children.choice(children)
            if not self.world.locked("task", child.id):
                refusal = self.store.undo(child, forced=True)
                self.world.log("operator: undo {} by itself: {}", child.id, refusal or "begun")

    def resubmit_parent(self) -> None:
        """Resubmit a step in error that has children, or undoes these."""
        for row in list(self.store.rows.values()):
            if row.view.state == StepState.ERROR and row.view.agent == LOCAL and concern(row.view):
                self._mend(row, by_hand=self.world.of_children.random() < 0.1)

    def hold(self) -> None:
        """Hold one of the four levels for a while."""
        rng, world = self.world.rng, self.world
        step = rng.choice(world.steps)
        task = rng.choice(list(self.store.tasks) or [""])
        hold = rng.choice([("task", task), ("name", step.name), ("agent", step.agent), ("all", "")])
        world.holds.append(hold)
        world.log("operator: hold {}", hold)
        world.after(world.chance(2.0, 20.0), self.release, hold)

    def release(self, hold: tuple[str, str]) -> None:
        """Release what was held."""
        if hold in self.world.holds:
            self.world.holds.remove(hold)
            self.world.log("operator: release {}", hold)

    def mend(self, *, by_hand: bool) -> None:
        """Resubmit a step in error, or do its work by hand."""
        rows = [row for row in self.store.rows.values() if row.view.state == StepState.ERROR]
        if rows:
            self._mend(self.world.rng.choice(rows), by_hand=by_hand)

    def mend_all(self) -> None:
        """Mend every step in error, and take back what only an alert names."""
        for (agent, key), keep in list(self.store.alarms.items()):
            if not self.world.under_way[key]:
                self.world.services[agent].take_back(key, keep)
                del self.store.alarms[agent, key]
        for row in list(self.store.rows.values()):
            if row.view.state == StepState.ERROR:
                poison = (row.view.task, row.view.name) in self.world.poison
                self._mend(row, by_hand=poison or self.world.rng.random() < 0.3)

    def _mend(self, row: Row, *, by_hand: bool) -> None:
        if self.world.under_way[row.key] or self.world.locked("task", row.view.task):
            return  # a person waits until nothing is on its way any more before finding out
        if concern(row.view) and row.view.agent == LOCAL:
            self.children.mend(row, by_hand=by_hand)
        elif row.view.agent == LOCAL:
            self._mend_computed(row, by_hand=by_hand)
        else:
            self._mend_called(row, by_hand=by_hand)

    def _mend_called(self, row: Row, *, by_hand: bool) -> None:
        world, store = self.world, self.store
        view, task = row.view, store.tasks[row.view.task]
        service = world.services[view.agent]
        known = service.ask(row.key, close=False)
        store.start_anew(row)
        view = row.view
        poison = (task.id, view.name) in world.poison
        forgotten = row.code == KEY_FORGOTTEN
        if known[0] == Outcome.LATER and (by_hand or forgotten):
            return  # a person waits for what is to come
        unwanted = forgotten and task.undoing and view.direction == Direction.DO
        if row.code == "done_by_hand":
            done = store.does(task)[view.name]
            service.take_back(done.key)
            world.log("operator: what {} made is taken back by hand", done.key)
            store.write(
                row,
                view.altered(
                    state=StepState.PROCESSED, result={}, in_doubt=False, done_by="operator"
                ),
            )
        elif known[0] == Outcome.DONE and (by_hand or forgotten):
            world.log("operator: {} was done", row.key)
            store.write(
                row,
                view.altered(
                    state=StepState.PROCESSED, result=known[1], in_doubt=False, done_by="operator"
                ),
            )
        elif by_hand and view.attempt and (poison or not forgotten) and not unwanted:
            outcome, result, code = service.call(
                world.now, row.key, view.direction, task.id, view.name, view.request,
                by_hand=True,
            )  # fmt: skip
            world.log("operator: {} by hand: {} {}", row.key, outcome, code)
            if outcome != Outcome.DONE:
                if poison and outcome == Outcome.REJECTED:  # it may have been closed: another key
                    store.pend(row, new_key=True)
                    store.finish(task)
                return
            done = view.altered(
                state=StepState.PROCESSED, result=result, in_doubt=False, done_by="operator"
            )
            store.write(row, done)
        elif unwanted:
            world.log("operator: {} was not done", row.key)
            store.write(row, view.altered(in_doubt=False))
            store.cancel(row)
        else:
            why = key_of_resubmission(
                view.outcome, view.attempt, in_doubt=view.in_doubt, changed=False,
                nothing_done=forgotten or known[0] == Outcome.REJECTED,
            )  # fmt: skip
            new_key = not keeps_key(why)
            if "doubt" in world.broken:
                new_key = view.outcome == Outcome.REJECTED
            row.probing_outcome = task.undoing and view.direction == Direction.DO and view.in_doubt
            world.log("operator: resubmit {}{}", row.key, " under a new key" * new_key)
            store.pend(row, new_key=new_key)
        store.finish(task)

    def _mend_computed(self, row: Row, *, by_hand: bool) -> None:
        """Compute a step by hand, or have it computed by mended code."""
        self.world.log("operator: mend {}{}", row.key, " by hand" * by_hand)
        if by_hand:
            result = compute(dict(row.view.request))
            done = row.view.altered(state=StepState.PROCESSED, result=result, done_by="operator")
            self.store.write(row, done)
        else:
            self.store.pend(row, new_key=True)
        self.store.finish(self.store.tasks[row.view.task])
