"""The workflows and policies of the runs."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from orchestration import registry
from orchestration.agents.errors import Rejected
from orchestration.models import Gate, Policy
from orchestration.payloads.placeholders import done, field, first, item, key, not_, passed, result
from orchestration.states import OnRejection, PastThreshold
from orchestration.workflows.step import Step
from orchestration.workflows.workflow import Workflow

from .services import Alpha, Beta, Gamma

AGENTS = (Alpha, Beta, Gamma)
POLICIES: Mapping[str, Mapping[str, Any]] = {
    "alpha": {},
    "beta": {"on_rejection": OnRejection.WAIT, "past_threshold": PastThreshold.UNDO},
    "gamma": {"on_rejection": OnRejection.UNDO, "past_threshold": PastThreshold.WAIT},
}
COMMON = {
    "time_allowed": 10.0, "call_timeout": 3.0, "tries": 1, "failure_threshold": 2, "backoff": 0.1,
    "backoff_cap": 0.2, "extended_wait": 5.0, "max_extended_waits": 2, "resolve_within": 30.0,
    "undo_threshold": 5, "key_memory": None, "breaker_failures": 60, "breaker_calls": 200,
}  # fmt: skip


def add(request: Mapping[str, Any]) -> dict[str, Any]:
    """Compute a step."""
    return {"sum": f"{request['of']} and more"}


def weigh(request: Mapping[str, Any]) -> dict[str, Any]:
    """Compute a step, or refuse it."""
    if request["heavy"]:
        raise Rejected("too_heavy", "another has to carry it")
    return {"grams": 1}


def data_of(reference: str, name: str = "Ada") -> dict[str, Any]:
    """Return the input of a task."""
    seed, _, number = reference.split("/", maxsplit=1)[0].partition("-")
    bits = int(seed) + int(number)
    boxes = list(range(bits % 4))
    return {"name": name, "gift": bits % 2 == 1, "heavy": bits // 2 % 2 == 1, "boxes": boxes}


def step(name: str, agent: str, *after: str, **options: Any) -> Step:
    """Return a step that is undone by key."""
    known: dict[str, Any] = {"undo": "take_back", "undo_request": {"key": key(name)}}
    request = {"to": field("name"), **({"of": result(after[0], "id")} if after else {})}
    fields: dict[str, Any] = {"request": request, **(options or known)}
    return Step(name=name, agent=agent, action="perform_it", after=after, **fields)


def maybe(name: str, agent: str, *after: str, **flow: Any) -> Step:
    """Return a step that may be skipped, or comes after one that may be; it is undone by key."""
    of = [result(other, "id", default=None) for other in after]
    undo = {"undo": "take_back", "undo_request": {"key": key(name)}}
    return step(name, agent, *after, request={"to": field("name"), "of": of}, **undo, **flow)


def computed(name: str, after: str) -> Step:
    """Return a step that a scheduler computes."""
    return Step(name=name, compute=add, after=[after], request={"of": result(after, "id")})


def last(name: str, agent: str, after: str) -> Step:
    """Return a step after a computed one."""
    request = {"to": field("name"), "of": result(after, "sum")}
    undo = {"undo": "take_back", "undo_request": {"key": key(name)}}
    return Step(name=name, agent=agent, action="perform_it", after=[after], request=request, **undo)


def boxes(**flow: Any) -> Step:
    """Return a step with a child for each box."""
    request = {"name": field("name"), "box": item()}
    return Step(
        name="boxes", workflow="box", each=field("boxes"), request=request, after=["a"], **flow
    )


def after_boxes() -> Step:
    """Return a step that takes what the boxes came to."""
    undo = {"undo": "take_back", "undo_request": {"key": key("z")}}
    return step(
        "z", "beta", "boxes", request={"to": field("name"), "of": result("boxes", "items")}, **undo
    )


WORKFLOWS = (
    Workflow(
        name="chain", steps=[step("a", "alpha"), step("b", "beta", "a"), step("c", "gamma", "b")]
    ),
    Workflow(
        name="fan",
        steps=[step("call", "alpha"), step("beside", "beta", "call"), computed("sum", "call")],
    ),
    Workflow(name="single", steps=[step("only", "beta")]),
    Workflow(
        name="pair",
        steps=[
            step("left", "alpha"),
            step("right", "gamma"),
            step("last", "beta", "left", "right", irreversible="it is in the post", not_before=3.0),
        ],
    ),
    Workflow(
        name="long", steps=[step("x", "gamma"), computed("sum", "x"), last("y", "alpha", "sum")]
    ),
    Workflow(
        name="either",
        steps=[
            maybe("one", "beta", refused={"refused": "pass"}),
            maybe("other", "alpha", "one", when=passed("one", "refused")),
            maybe("all", "gamma", "one", "other", refused={"refused": "wait"}),
        ],
    ),
    Workflow(
        name="parcel",
        steps=[
            maybe("wrap", "gamma", when=field("gift"), refused={"*": "pass"}),
            Step(
                name="weigh",
                compute=weigh,
                after=["wrap"],
                request={"heavy": field("heavy")},
                refused={"too_heavy": "pass"},
            ),
            maybe("post", "beta", "weigh", when=done("weigh"), refused={"refused": "undo"}),
            maybe("carry", "alpha", "weigh", when=not_(done("weigh"))),
            maybe("card", "gamma", "wrap", when=done("wrap")),
            maybe(
                "end",
                "alpha",
                "post",
                "carry",
                "card",
                when=first(field("letter", default=None), field("gift")),
            ),
        ],
    ),
)

WITH_CHILDREN = (
    Workflow(
        name="all",
        steps=[step("a", "alpha"), boxes(refused={"child_undone": "pass"}), after_boxes()],
    ),
    Workflow(name="some", steps=[step("a", "alpha"), boxes(enough=1), after_boxes()]),
    Workflow(
        name="strict",
        steps=[step("a", "alpha"), boxes(refused={"child_undone": "undo"}), after_boxes()],
    ),
)
OF_KIND = {"children": WITH_CHILDREN, "undone in part": (*WORKFLOWS, *WITH_CHILDREN)}
CHILD = Workflow(
    name="box", steps=[step("wrap", "beta"), step("tape", "gamma", "wrap")], result=result("tape")
)


@contextmanager
def declared() -> Iterator[None]:
    """Have these workflows and agents, and no others, in this block."""
    with ExitStack() as stack:
        agents = {agent.name: agent for agent in AGENTS}
        workflows = {workflow.name: workflow for workflow in (*WORKFLOWS, *WITH_CHILDREN, CHILD)}
        stack.enter_context(patch.object(registry, "agents", agents))
        stack.enter_context(patch.object(registry, "workflows", workflows))
        stack.enter_context(patch.object(registry, "receivers", {}))
        stack.enter_context(patch.object(registry, "audits", {}))
        yield


def ensure() -> None:
    """Make the rows of these agents, and no others."""
    Policy.objects.exclude(agent__in=POLICIES).delete()
    Gate.objects.exclude(agent__in=POLICIES).delete()
    for name, own in POLICIES.items():
        Policy.objects.update_or_create(agent=name, defaults={**COMMON, **own})
