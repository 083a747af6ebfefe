"""People change the input of running tasks: for steps that have not used it, and for no other."""

from typing import Any

from orchestration.decisions.input_change import input_change
from orchestration.states import FINAL_TASK_STATES, Direction, StepState
from orchestration.transitions.input_changes import templates

from .services import require
from .store import SimTask
from .world import World

TIMES = 3  # in each run
TURNED = 0.5  # share of the runs with children in which conditions change too: others stay what they were
UNUSED = frozenset({StepState.WAITING, StepState.CANCELLED})  # their requests are templates still


class Amends:
    """Changes of tasks' inputs. One method is one transaction."""

    def __init__(self, world: World) -> None:
        self.world, self.store = world, world.store
        self.fields = ["note", "note", "parts"]
        if world.part and world.of_amends.random() < TURNED:
            self.fields += ["yes", "no"]
        self.declared = templates(world.workflow)

    def amend(self) -> None:
        """Change a field of some task's input, unless a step has used it."""
        world, store = self.world, self.store
        tasks = [task for task in store.tasks.values() if _may_change(task)]
        if not tasks:
            return
        task, name = world.of_amends.choice(tasks), world.of_amends.choice(self.fields)
        if world.locked("task", task.id) or name not in task.data:
            return
        after = {**task.data, name: self._other(task.data[name])}
        follows = input_change(task.views(), self.declared, task.data, after)
        world.log("operator: amend {} of {}: {}", name, task.id, follows.taken or "done")
        if follows.taken and "taken" not in world.broken:
            return
        task.data = after
        for step in follows.rebuilt if "rebuilt" not in world.broken else ():
            row = task.rows[step.id]
            row.view = row.view.altered(request=step.request)
        store.finish(task)

    def _other(self, value: Any) -> Any:
        """Return another value for a field."""
        if isinstance(value, bool):
            return not value
        number = self.world.of_amends.random()
        if isinstance(value, list):
            return [*value[1:], {"order": f"another {number}"}]
        return f"another {number}"


def _may_change(task: SimTask) -> bool:
    return not (task.parent or task.undoing or task.state in FINAL_TASK_STATES)


def check(task: SimTask) -> None:
    """Check that no step was begun with values that its task's input has no more."""
    for row in task.rows.values():
        view = row.view
        if "note" not in view.request and not view.makes_children:
            continue
        unsent = not view.attempt and view.state in {StepState.SKIPPED, StepState.ERROR}
        if view.direction == Direction.UNDO or view.state in UNUSED or unsent:
            continue
        used = view.request.get("note", task.data.get("note"))
        if view.makes_children and not task.parent:
            orders = [{"order": item["order"]} for item in view.request["items"]]
            require(
                orders == task.data["parts"],
                f"{view.name} of {task.id} has children of former values",
            )
            used = next((item["note"] for item in view.request["items"]), task.data["note"])
        require(used == task.data.get("note"), f"{view.name} of {task.id} has a former value")
