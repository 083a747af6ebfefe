"""Steps with child tasks, in a share of the runs: drawn by themselves, so that others stay what they were."""

from dataclasses import replace
from random import Random
from typing import Any

from orchestration.decisions.flow import CHILD_UNDONE, PASS
from orchestration.declarations.workflows import own_problems
from orchestration.payloads.placeholders import field, item, result
from orchestration.workflows.step import Step
from orchestration.workflows.workflow import Workflow

from .shapes import Rules, called, with_flow

WITH_CHILDREN = 0.2  # share of the runs
PARTS = "parts"  # the step that has children
REFUSED: tuple[dict[str, str], ...] = (
    *({}, {}, {CHILD_UNDONE: "error"}),
    *({CHILD_UNDONE: PASS}, {CHILD_UNDONE: "undo"}, {CHILD_UNDONE: "wait"}),
)

# faults of their own, and how often each comes
STRIKES = {
    "child_refused": 2,
    "make_crash": 2,
    "join_crash": 2,
    "undo_child": 3,
    "resubmit_parent": 3,
}


def add_children(
    rng: Random, workflow: Workflow, agents: dict[str, Rules]
) -> tuple[Workflow, Workflow | None]:
    """Return a workflow with a step that has children, and theirs; or as it is, and None."""
    if rng.random() >= WITH_CHILDREN:
        return workflow, None
    steps = {step.name: step for step in workflow.steps}
    limits: dict[str, Any] = {}
    if rng.random() < 0.3:
        limits = {"ends_within": rng.uniform(5.0, 40.0), "late": rng.choice(("error", "undo"))}
    steps[PARTS] = Step(
        name=PARTS,
        workflow="part",
        each=field("parts"),
        request={"order": item("order"), "yes": True, "no": False, "note": field("note")},
        after=rng.sample(sorted(steps), min(len(steps), rng.choice((0, 1, 1, 2)))),
        refused=rng.choice(REFUSED),
        enough=rng.choice((None, None, 1, 2)),
        **limits,
    )
    agent = rng.choice(sorted(agents))
    of = result(PARTS, "items", default=None) if steps[PARTS].may_be_skipped else None
    close = called("close", agent, (), steps, agents[agent])
    request = {**close.request, "of": of or result(PARTS, "items")}
    steps["close"] = replace(close, after=[PARTS], request=request)
    return _checked(workflow.name, steps), _of_children(rng, agents)


def items_of(rng: Random, task: str) -> list[dict[str, str]]:
    """Draw the list for which a task gets children: one for each."""
    return [{"order": f"{task}-{number}"} for number in range(rng.choice((0, 1, 2, 2, 3, 5)))]


def _of_children(rng: Random, agents: dict[str, Rules]) -> Workflow:
    """Draw the workflow of children: one step or two."""
    steps: dict[str, Step] = {}
    for name in ("pick", "pack")[: rng.randint(1, 2)]:
        agent = rng.choice(sorted(agents))
        plain = called(name, agent, tuple(steps), steps, agents[agent])
        steps[name] = with_flow(plain, steps, rng) if rng.random() < 0.3 else plain
    last = steps[name]
    made = result(name, "id", default=None) if last.may_be_skipped else result(name, "id")
    return _checked("part", steps, {"made": made})


def _checked(name: str, steps: dict[str, Step], made: Any = None) -> Workflow:
    workflow = Workflow(name=name, steps=list(steps.values()), result=made or {})
    assert (problems := own_problems(workflow)) == [], problems
    return workflow
