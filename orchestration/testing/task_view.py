"""What a test sees of a task."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..applications import task_status
from ..applications.task_handle import TaskHandle
from ..applications.task_status import Progress, StepProgress
from ..states import Direction, StepState
from .doubles import Called

NOT_TAKEN = "submitted"  # the state of a task that does not exist yet


@dataclass(frozen=True, kw_only=True)
class TaskView:
    """A task by its workflow and reference, read anew each time."""

    workflow: str
    reference: str
    run_calls: Sequence[Called]

    @property
    def handle(self) -> TaskHandle:
        """Its handle, as `api.submit` returns it: to act as its application does, or to follow it up."""
        return TaskHandle(self.workflow, self.reference)

    @property
    def state(self) -> str:
        """Its state, such as "processed"; "submitted" before it exists, "refused" if it never will."""
        progress = task_status.progress(self.workflow, self.reference)
        if progress is not None:
            return str(progress.state)
        aside = task_status.set_aside(self.workflow, self.reference)
        return NOT_TAKEN if aside is None else "refused"

    @property
    def steps(self) -> dict[str, str]:
        """The state of each step."""
        return self._states(Direction.DO)

    @property
    def undo_steps(self) -> dict[str, str]:
        """The state of each undo, by the name of the step that it undoes."""
        return self._states(Direction.UNDO)

    @property
    def undone(self) -> list[str]:
        """The steps that were undone, in the order in which that was done."""
        done = {name for name, state in self.undo_steps.items() if state == StepState.PROCESSED}
        last = {call.step: at for at, call in enumerate(self.calls()) if call.direction == "undo"}
        return sorted(done & last.keys(), key=last.__getitem__)

    def calls(self) -> list[Called]:
        """Return the calls that were made for it, in their order."""
        return [call for call in self.run_calls if call.reference == self.reference]

    def step(self, name: str, direction: str = Direction.DO) -> StepProgress:
        """Return all about one step: its attempt, error code, result, and so on."""
        for step in self.progress.steps:
            if (step.name, step.direction) == (name, direction):
                return step
        raise LookupError(f"the task has no step {name!r} ({direction})")

    def result(self, name: str) -> dict[str, Any] | None:
        """Return the result of a step."""
        return self.step(name).result

    @property
    def progress(self) -> Progress:
        """What the application sees of it; raises `LookupError` before it exists."""
        progress = task_status.progress(self.workflow, self.reference)
        if progress is None:
            raise LookupError(f"there is no task {self.reference} of {self.workflow}: {self.state}")
        return progress

    def _states(self, direction: Direction) -> dict[str, str]:
        return {
            step.name: str(step.state)
            for step in self.progress.steps
            if step.direction == direction
        }
