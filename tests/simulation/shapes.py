"""What a run is about: workflows, policies and faults, all drawn from the run's seed."""

from dataclasses import dataclass, replace
from random import Random
from typing import Any

from orchestration.decisions.flow import PASS
from orchestration.decisions.gate import Limits
from orchestration.decisions.recovery import Thresholds
from orchestration.declarations.workflows import own_problems
from orchestration.payloads.placeholders import done, field, key, not_, passed, result
from orchestration.states import LOCAL, OnRejection, PastThreshold
from orchestration.workflows.step import Step
from orchestration.workflows.workflow import Workflow

TIME_ALLOWED = 10.0  # seconds from dispatch to complete-by
CALL_TIMEOUT = 3.0  # seconds until an agent stops waiting for its service
MEND_WITHIN = 15.0  # seconds for which a refusal waits to be mended, where the policy says so
BLOCKED = 12.0  # seconds for which some poison blocks its worker: past complete-by
LATEST = 8.0  # seconds by which a call that its agent gave up may still arrive

FAULTS = (
    # messages
    *("request_lost", "request_twice", "request_late", "reply_lost", "reply_twice", "reply_late"),
    *("reply_very_late", "taken_twice", "taken_twice"),
    # processes
    *("claim_crash", "record_crash", "sweep_crash", "agent_crash_before", "agent_crash_after"),
    *(
        "performer_killed",
        "performer_blocked",
        "agent_stopped",
        "redis_flushed",
        "schedulers_stopped",
        "supervisor_stopped",
    ),
    # services
    *("call_lost", "call_late", "answer_lost", "unavailable", "leave_alone", "refused", "outage"),
    *("long_outage", "slow_answer", "slow_work", "refused"),
    # other sessions of the database
    *("lock_task", "lock_gate", "lock_incident"),
    # people
    *("undo", "undo", "force_undo", "resubmit", "by_hand", "hold", "hold"),
)


POISON = ("refused", "raises", "kills", "blocks")  # what a poison step does, each time
WITH_FLOW = 0.5  # share of the runs with steps that may be skipped
ACCEPTING = (0.0, 0.0, 0.3, 1.0)
ENDS_WITHIN = 30.0  # seconds that what was accepted has, where its step does not say
FAILING = (0.0, 0.0, 0.0, 0.0, 0.05, 0.1, 0.2, 0.35, 0.5)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """One agent's policy, and what its service can do."""

    thresholds: Thresholds
    limits: Limits
    on_rejection: str
    key_memory: float | None
    undo_by: str  # "key", "result", "none" (nothing to undo) or "never" (irreversible)
    can_ask: bool
    stores_refusals: bool
    isolated: (
        bool  # its code may take along the process that performs its requests, but not its worker
    )
    failing: float  # share of calls that fail, as long as the run takes
    accepts: float = 0.0  # share of calls that are accepted, and end later


def rules(rng: Random, undo_by: str) -> Rules:
    """Draw a policy with short times, so that a run of two minutes sees all of it."""
    failures = rng.choice((2, 3, 5))
    return Rules(
        thresholds=Thresholds(
            failure_threshold=failures,
            backoff=rng.choice((0.5, 1.0, 3.0)),
            backoff_cap=8.0,
            undo_threshold=failures + rng.randrange(4),
            past_threshold=rng.choice(PastThreshold.values),
            extended_wait=20.0,
            max_extended_waits=rng.randrange(3),
        ),
        limits=Limits(
            window=rng.choice((1, 2, 3, 30)),
            rate=rng.choice((None, None, 0.5, 2.0)),
            time_allowed=TIME_ALLOWED,
            calls=6,
            failures=rng.choice((2, 3, 4)),
            share=0.5,
            pause=rng.choice((2.0, 5.0)),
            pause_cap=10.0,
            retry_after_cap=3600.0,
        ),
        on_rejection=rng.choice(OnRejection.values),
        key_memory=rng.choice((None, 15.0, 40.0)),
        undo_by=undo_by,
        # Where undo needs a result, a call that arrives after the answer "unknown key" could not be
        # refused any more: such a service is settled by a repeat.
        can_ask=undo_by == "key" and rng.random() < 0.6,
        stores_refusals=rng.random() < 0.5,
        isolated=rng.random() < 0.5,
        failing=rng.choice(FAILING),
    )


def draw(rng: Random, of_flows: Random) -> tuple[Workflow, dict[str, Rules]]:
    """Return a workflow (every second one shaped like an order's) and the rules of its agents.

    What may be skipped is drawn by itself, so that runs without it stay what they were.
    """
    if rng.random() < 0.5:
        agents = {
            "inventory": rules(rng, "key"),
            "payment": rules(rng, rng.choice(("key", "result"))),
            "shipping": rules(rng, "result"),
            "mail": rules(rng, "never"),
        }
        flow = {
            "reserve": ("inventory", ()),
            "authorize": ("payment", ()),
            "ship": ("shipping", ("reserve", "authorize")),
            "capture": ("payment", ("ship",)),
            "mail": ("mail", ("capture",)),
        }
    else:
        kinds = ("key", "key", "result", "result", "none", "never")
        agents = {name: rules(rng, rng.choice(kinds)) for name in "abc"}
        flow = {}
        for number in range(rng.randint(2, 6)):
            earlier = rng.sample(sorted(flow), min(len(flow), rng.choice((0, 1, 1, 2))))
            flow[f"s{number}"] = (rng.choice((*"abc", LOCAL)), tuple(earlier))
    steps: dict[str, Step] = {}
    agents = {
        name: replace(of_agent, accepts=of_flows.choice(ACCEPTING))
        for name, of_agent in agents.items()
    }
    has_flow = of_flows.random() < WITH_FLOW
    for name, (agent, after) in flow.items():
        plain = (
            called(name, agent, after, steps, agents[agent])
            if agent
            else _computed(name, after, steps)
        )
        steps[name] = with_flow(plain, steps, of_flows) if has_flow else plain
    workflow = Workflow(name="simulated", steps=list(steps.values()))
    assert own_problems(workflow) == []
    return workflow, agents


def with_flow(step: Step, earlier: dict[str, Step], rng: Random) -> Step:
    """Return a step that may be skipped, by a condition, a refusal, or both, or waits for its time."""
    if rng.random() < 0.3:
        each = {"*": PASS, "compute_failed": PASS}
        refused = rng.choice((each, {"refused": PASS, "*": "error"}, {"refused": "undo"}))
        step = replace(step, refused=refused)
    if step.agent and rng.random() < 0.5:
        step = replace(step, ends_within=rng.uniform(5.0, 40.0), late=rng.choice(("error", "undo")))
    if rng.random() < 0.5:
        conditions = [field("yes"), field("no"), not_(field("no")), field("none", default=True)]
        for name in step.after:
            conditions += [done(name), not_(done(name)), result(name, "id", default=None)]
            if PASS in earlier[name].refused.values():
                conditions += [passed(name), not_(passed(name)), passed(name, "refused")] * 3
        step = replace(step, when=rng.choice(conditions))
    if rng.random() < 0.25:
        step = replace(step, not_before=rng.uniform(0.0, 12.0))
    return step


def with_notes(rng: Random, workflow: Workflow) -> Workflow:
    """Return a workflow some of whose requests take a field more, which changes nothing else."""
    steps = [
        replace(step, request={**step.request, "note": field("note")})
        if rng.random() < 0.4
        else step
        for step in workflow.steps
    ]
    return replace(workflow, steps=steps)


def _taken(after: tuple[str, ...], steps: dict[str, Step]) -> list[Any]:
    """Return what a request takes of earlier steps."""
    return [
        result(name, "id", default=None) if steps[name].may_be_skipped else result(name, "id")
        for name in after
    ]


def called(
    name: str, agent: str, after: tuple[str, ...], steps: dict[str, Step], agent_rules: Rules
) -> Step:
    undo_requests = {"key": {"key": key(name)}, "result": {"id": result(name, "id")}}
    return Step(
        name=name,
        agent=agent,
        action="do",
        after=after,
        request={"order": field("order"), "of": _taken(after, steps)},
        undo="undo" if agent_rules.undo_by in undo_requests else None,
        undo_request=undo_requests.get(agent_rules.undo_by, {}),
        irreversible="what is sent is sent" if agent_rules.undo_by == "never" else "",
    )


def compute(request: dict[str, Any]) -> dict[str, Any]:
    """Return a result made from the request, for later steps to use."""
    return {"id": "+".join(map(str, request["of"])) or request["order"]}


def _computed(name: str, after: tuple[str, ...], steps: dict[str, Step]) -> Step:
    request = {"order": field("order"), "of": _taken(after, steps)}
    return Step(name=name, compute=compute, after=after, request=request)
