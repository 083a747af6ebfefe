"""Problems of what may be skipped: conditions, refusals that are passed over, and results that then lack."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..decisions.flow import LATE, PASS, Flow
from ..payloads.placeholders import DONE, ends, required
from ..registry import suggest
from ..states import OnRejection
from ..workflows.step import Step
from . import templates
from .problem import Problem, shown

FOLLOWS = (*OnRejection.values, PASS)
HOW_TO_DECIDE = (
    "A condition is a template: result(…), field(…), passed(…), done(…), not_(…). Anything else belongs "
    "in a step with compute=, whose result it takes."
)
WITHOUT_RESULT = (
    "Give it a default, name other steps by first(…), or skip this step too: when=done({!r})."
)


def malformed(step: Any) -> Iterable[Problem]:
    """Yield conditions that are no templates, and refusals that name nothing that can follow."""
    for problem in templates.not_json(step.when):
        yield problem._replace(text=f"its when {problem.text}", hint=HOW_TO_DECIDE)
    if not isinstance(step.when, bool | Mapping):
        yield Problem("E015", f"its when is {shown(step.when)}, always the same", HOW_TO_DECIDE)
    if not isinstance(step.refused, Mapping):
        yield Problem("E015", f"refused is {shown(step.refused)}, not a dict of codes")
        return
    for code, follows in step.refused.items():
        if not isinstance(code, str) or not code:
            yield Problem("E015", f"refused has {shown(code)}, not the code of a refusal")
        if follows not in FOLLOWS:
            near = suggest(str(follows), FOLLOWS)
            yield Problem("E015", f"after {code!r} follows {shown(follows)}{near}")


def taken(
    step: Step, steps: Mapping[str, Step], before: Mapping[str, set[str]]
) -> Iterable[Problem]:
    """Yield what a step takes of others that need not have it, and ends of theirs that cannot be.

    `before` are the names of the steps that each one comes after, directly or through others.
    """
    certain = _certain(step, steps, before)
    needed = {
        "when": set[str](), "request": certain, "undo_request": certain | {step.name},
        "ends_within": certain, "each": certain, "not_before": set[str](),
    }  # fmt: skip
    for name, there in needed.items():
        template = getattr(step, name)
        for origin, *_ in required(template):
            if origin in before and origin not in there and steps[origin].may_be_skipped:
                text = f"its {name} takes the result of {origin!r}, which may be skipped"
                yield Problem("E015", text, WITHOUT_RESULT.format(origin))
        for kind, other, *codes in ends(template):
            if problem := _never(step, kind, other, codes, steps, before):
                yield Problem("E015", f"its {name} asks whether {other!r} {problem}")


def _never(
    step: Step, kind: str, other: str, codes: Sequence[str], steps: Mapping[str, Step],
    before: Mapping[str, set[str]],
) -> str:  # fmt: skip
    """Return why what a template asks of another step never holds, or ""."""
    if other not in steps:
        return f"ended, which is not one of its steps{suggest(other, steps)}"
    if kind == DONE:
        return "is done, and that comes later" if step.name in {other, *before[other]} else ""
    if other not in before[step.name]:
        return "is passed over, which need not have ended before it"
    refused = {} if steps[other].workflow else dict(steps[other].refused)
    if steps[other].late == PASS:
        refused[LATE] = PASS
    if not codes and PASS not in refused.values():
        return "is passed over, and none of its refusals is: refused={code: 'pass'}"
    for code in codes:
        if not Flow(refused=refused).passes(code):
            return (
                f"is passed over for {code!r}, and that is not in its refused={{{code!r}: 'pass'}}"
            )
    return ""


def _certain(step: Step, steps: Mapping[str, Step], before: Mapping[str, set[str]]) -> set[str]:
    """Return the steps that may be skipped, but are done if `step` is not skipped."""
    certain: set[str] = set()
    for name in before[step.name]:
        other = steps[name]
        same = (
            step.when is not True and step.when == other.when and PASS not in other.refused.values()
        )
        if same or step.when == {DONE: [name]}:
            certain |= {name} | _certain(other, steps, before)
    return certain


def of_results(step: Step, schemas: Mapping[str, Mapping[str, Any] | None]) -> Iterable[Problem]:
    """Yield the values of results that a condition takes, and that need not be there."""
    for origin, *path in required(step.when):
        schema = schemas.get(origin)
        if schema and path and path[0] not in schema.get("required", ()):
            text = f"its when takes {path[0]!r} of the result of {origin!r}, which need not have it"
            yield Problem("E015", text, "Give it a default.")
