"""Steps that are done by child tasks: these are made, joined and undone as the pure core decides."""

from collections import defaultdict
from collections.abc import Callable, Iterable

from orchestration.decisions.joining import (
    Ending,
    awaits_children,
    ending,
    ending_of_undo,
    lacks,
    may_undo,
    undoes,
)
from orchestration.decisions.progress import Refusal, StepView, after_reply
from orchestration.models.join import ALL
from orchestration.payloads import references
from orchestration.states import FINAL_TASK_STATES, Direction, Outcome, StepState, TaskState

from .services import require
from .store import Row, SimTask
from .world import World

PAGE = 2  # children of a step whose undo one look begins


class Children:
    """What schedulers do for steps with children. One method is one transaction, but for those with `_`."""

    def __init__(self, world: World, rejected: Callable[[Row, SimTask], None]) -> None:
        self.world, self.store, self._rejected = world, world.store, rejected
        self.of_step: dict[int, list[SimTask]] = defaultdict(list)  # in the order of their making
        self.looks: list[tuple[int, int]] = []  # steps to look at, with `undo_below` of their joins
        self.kept: set[str] = (
            set()
        )  # those whose undo was refused: an effect of theirs cannot be undone
        world.store.child_ended = self._ended
        world.children_of = self.of_step

    def begin(self, row: Row) -> bool:
        """Make the children of a step, or have these undone; return False if the process dies at it."""
        world, store, view = self.world, self.store, row.view
        task = store.tasks[view.task]
        does = view.direction == Direction.DO
        new = self._to_make(row) if does else []
        if world.hit("make_crash"):
            if "whole" in world.broken:
                self._make(view, new[:1])
            return False
        attempt, refused = view.attempt + 1, bool(new) and world.hit("child_refused")
        store.write(
            row,
            view.altered(
                state=StepState.PROCESSING, attempt=attempt, locked_by="scheduler", outcome=""
            ),
        )
        store.settle_claimed(task.id)
        outcome = Outcome.LATER if not does or view.request["items"] else Outcome.DONE
        if not does and "up" in world.broken:
            outcome = Outcome.DONE
        row.code = "child_refused" if refused else ""
        after = after_reply(
            row.view, Outcome.REJECTED if refused else outcome, {} if not does or new else {"items": []},
            undoing=task.undoing, code=row.code,
        )  # fmt: skip
        store.accept(row, after, attempt)
        self._follow(row, task)
        self._make(view, [] if refused else new)
        if not does:
            done = store.does(task)[view.name].view.id
            if "up" in world.broken:
                world.after(5.0, self._ask, done, ALL)
            else:
                self._ask(done, ALL)
        elif view.attempt:
            self._ask(view.id)
        store.finish(task)
        return True

    def look(self) -> bool:
        """Look at the children of steps, as asked for; return False if the process dies at it."""
        for task in dict.fromkeys(self.store.rows[step].view.task for step, _ in self.looks):
            if self.world.hit("join_crash"):
                return False
            if not self.world.locked("task", task):
                self._join(self.store.tasks[task])
        return True

    def mend(self, row: Row, *, by_hand: bool) -> None:
        """Do with a step in error what a person does: it is tried again, or taken for done."""
        world, store = self.world, self.store
        children = self.of_step[store.does(store.tasks[row.view.task])[row.view.name].view.id]
        if row.view.direction == Direction.UNDO:
            left = [child for child in children if not child.undoing]
            for child in left:
                if not world.locked("task", child.id):
                    world.log(
                        "operator: undo {} by force: {}", child.id, store.undo(child, forced=True)
                    )
            if left:
                return  # the step is tried again later
        if by_hand and row.view.direction == Direction.DO:
            world.log("operator: {} is taken for done", row.key)
            result = {"items": [None for _ in row.view.request["items"]]}
            done = row.view.altered(state=StepState.PROCESSED, result=result, done_by="operator")
            store.write(row, done)
        else:
            world.log("operator: resubmit {}", row.key)
            store.pend(row, new_key=row.view.outcome == Outcome.REJECTED)
        store.finish(store.tasks[row.view.task])

    def _to_make(self, row: Row) -> list[int]:
        """Return the positions of items that have no child, but for those that are being undone."""
        resubmitted = row.view.attempt and "kept" not in self.world.broken
        there = {
            child.position
            for child in self.of_step[row.view.id]
            if resubmitted and not child.undoing
        }
        return [place for place in range(len(row.view.request["items"])) if place not in there]

    def _make(self, view: StepView, positions: Iterable[int]) -> None:
        """Make children of a step, seen as before it began."""
        world, store = self.world, self.store
        assert world.part
        for place in positions:
            name = references.of_child(view.task, view.name, place, view.attempt)
            require(name not in store.tasks, f"{name} is made twice")
            others = [child for child in self.of_step[view.id] if child.position == place]
            require(
                all(child.undoing for child in others),
                f"{view.task}: item {place} has two children",
            )
            child = SimTask(
                id=name, data=dict(view.request["items"][place]), parent=view.id, position=place,
                result=world.part.result,
            )  # fmt: skip
            world.log("make {}", name)
            self.of_step[view.id].append(child)
            store.add(child, world.part)

    def _ask(self, step: int, below: int = 0) -> None:
        self.looks.append((step, below))

    def _ended(self, child: SimTask) -> None:
        """Ask for a look as a child has ended, if no other that others have not locked goes on."""
        if "look" in self.world.broken and child.state == TaskState.UNDONE:
            return
        flow = self.store.rows[child.parent].view.flow
        others = (other for other in self.of_step[child.parent] if _goes_on(other))
        last = all(self.world.locked("task", other.id) for other in others)
        if last or "all" in self.world.broken or (flow and flow.enough is not None):
            self._ask(child.parent)

    def _join(self, task: SimTask) -> None:
        """Have children undone that are to be, and end the steps whose children have ended, or enough."""
        below: dict[int, int] = {}
        for step, limit in self.looks:
            if step in task.rows:
                below[step] = max(below.get(step, 0), limit)
        self.looks = [look for look in self.looks if look[0] not in task.rows]
        undos = {
            row.view.name: row for row in task.rows.values() if row.view.direction == Direction.UNDO
        }
        looked = [(task.rows[step], undos.get(task.rows[step].view.name)) for step in below]
        going = {
            row.view.id for row, undo in looked if self._undo(task, row, undo, below[row.view.id])
        }
        for row, undo in looked:
            if row.view.id not in going:
                self._end(task, row, undo)
        self.store.finish(task)

    def _undo(self, task: SimTask, row: Row, undo: Row | None, below: int) -> bool:
        """Begin the undo of the next children of a step; return whether there may be more."""
        world, undo_view = self.world, undo.view if undo else None
        if not below or not may_undo(row.view, undo_view, undoing=task.undoing):
            return False
        there = [
            child
            for child in self.of_step[row.view.id]
            if not child.undoing and child.position < below
        ]
        page = sorted(there, key=lambda child: -child.position)[:PAGE]
        to_undo = [child for child in page if undoes(undo_view) or lacks(row.view, child.position)]
        busy = [child.position for child in to_undo if world.locked("task", child.id)]
        for child in [child for child in to_undo if child.position not in busy]:
            refusal = self.store.undo(child)
            world.log("undo {} for {}: {}", child.id, row.key, refusal or "begun")
            if refusal is Refusal.IRREVERSIBLE:
                self.kept.add(child.id)
        if page:
            self._ask(row.view.id, max(busy) + 1 if busy else page[-1].position)
        return bool(page)

    def _end(self, task: SimTask, row: Row, undo: Row | None) -> None:
        """End a step whose children have ended, or enough of them; or its undo."""
        view, undo_view = row.view, undo.view if undo else None
        if not awaits_children(view, undo_view, undoing=task.undoing):
            return
        children = self.of_step[view.id]
        runs = any(_goes_on(child) for child in children)
        processed = sum(child.state == TaskState.PROCESSED for child in children)
        enough = view.flow.enough if view.flow and not undoes(undo_view) else None
        if runs and not (enough and processed >= enough) and "all" not in self.world.broken:
            return
        if undo and undoes(undo_view):
            self._write(undo, task, ending_of_undo(children))
            return
        self._write(row, task, ending(view, children, running=runs and enough is not None))
        self._check_end(row.view, children)
        if runs and "rest" not in self.world.broken:
            self._ask(view.id, ALL)

    def _write(self, row: Row, task: SimTask, how: Ending) -> None:
        self.world.log(
            "{} ends by its children: {} {}", row.key, how.outcome, how.message or how.result
        )
        row.code = how.code
        after = after_reply(
            row.view, how.outcome, how.result, undoing=task.undoing, in_doubt=False, code=how.code
        )
        self.store.write(row, after)
        self._follow(row, task)

    def _follow(self, row: Row, task: SimTask) -> None:
        flow = row.view.flow
        if row.view.state == StepState.ERROR and not task.undoing:
            self._rejected(row, task)
        elif row.view.state == StepState.AWAITING and flow and flow.ends_within:
            row.ends_by = self.world.now + flow.ends_within

    def _check_end(self, step: StepView, children: list[SimTask]) -> None:
        """Check that the results of a step are those of its children, and that none is left out."""
        if step.state != StepState.PROCESSED:
            return
        flow, items = step.flow, (step.result or {})["items"]
        enough = bool(
            flow and flow.enough and sum(item is not None for item in items) >= flow.enough
        )
        for place, item in enumerate(items):
            count = [child for child in children if child.position == place and not child.undoing]
            goes_on = any(_goes_on(child) for child in children if child.position == place)
            require(
                enough or not goes_on,
                f"{step.name} of {step.task} ends, and its child {place} goes on",
            )
            done = [child.result for child in count if child.state == TaskState.PROCESSED]
            known = item == done[0] if done else item is None
            require(
                known, f"{step.name} of {step.task} has {item} of its child {place}, not {done}"
            )

    def judge(self, task: SimTask) -> None:
        """Check how the children of a task have ended, once nothing moves any more."""
        does = self.store.does(task)
        for row in list(task.rows.values()):
            view = row.view
            children = self.of_step.get(does[view.name].view.id, [])
            if view.state == StepState.AWAITING and not view.agent:
                left = any(_goes_on(child) for child in children)
                require(left, f"{view.name} of {task.id} waits for children that have ended")
            if view.direction == Direction.UNDO or not children:
                continue
            for child in children:
                self._judge(task, view, child)

    def _judge(self, task: SimTask, step: StepView, child: SimTask) -> None:
        late = child.id in self.store.late_tasks
        if task.state == TaskState.UNDONE:
            undone = child.state == TaskState.UNDONE or (late and child.undoing)
            require(undone, f"{task.id} is undone, and its child {child.id} is {child.state}")
        needless = step.state == StepState.PROCESSED and not step.done_by and not task.undoing
        if needless and lacks(step, child.position):
            begun = child.undoing or child.id in self.kept
            require(begun, f"{step.name} of {task.id} has enough, and {child.id} is {child.state}")

    def awaited(self, task: SimTask) -> bool:
        """Return whether a task waits for children only, and one of these has not ended."""
        return any(
            row.view.state == StepState.AWAITING and not row.view.agent
            for row in task.rows.values()
        )


def _goes_on(child: SimTask) -> bool:
    return child.state not in FINAL_TASK_STATES
