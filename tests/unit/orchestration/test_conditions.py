"""Templates of conditions, and what start-up refuses of them."""

from dataclasses import dataclass

import pytest

from orchestration.declarations.workflows import own_problems, problems
from orchestration.payloads.placeholders import (
    CODES,
    Unresolved,
    done,
    field,
    first,
    loaded,
    not_,
    passed,
    resolve,
    result,
)
from orchestration.workflows.step import Step
from orchestration.workflows.workflow import Workflow

RESULTS = {"a": {"id": "a1", "none": None}, CODES: {"b": "not_served"}}


@pytest.mark.parametrize(
    ("template", "value"),
    [
        (result("a", "id", default="x"), "a1"),
        (result("b", "id", default="x"), "x"),
        (result("a", "none", default="x"), None),
        (field("x", default=0), 0),
        (field("given", "deep", default=0), 7),
        (first(result("b", "id"), result("a", "id")), "a1"),
        (first(result("b", "id"), {"of": [result("a", "id")]}), {"of": ["a1"]}),
        (not_(result("a", "none")), True),
        (not_(result("a", "id")), False),
        (done("a"), True),
        (done("b"), False),
        (not_(done("b")), True),
        (passed("b"), True),
        (passed("b", "not_served"), True),
        (passed("b", "no_credit", "not_served"), True),
        (passed("b", "no_credit"), False),
        (passed("a"), False),
        (passed("c"), False),
    ],
)
def test_template_stands_for_its_value(template, value):
    assert resolve({"x": template}, {"given": {"deep": 7}}, RESULTS) == {"x": value}


@pytest.mark.parametrize(
    ("template", "why"),
    [
        (result("b", "id"), "b has no result"),
        (result("b"), "b has no result"),
        (first(result("b", "id"), field("x")), "b has no result"),
        (not_(field("x")), "the input has no x"),
    ],
)
def test_template_without_a_value_says_why(template, why):
    with pytest.raises(Unresolved, match=why):
        resolve(template, {}, RESULTS)


def test_input_cannot_pose_as_a_condition():
    forged = {"x": {"$done": ["a"]}, "y": {"$from": ["a", "id"]}}
    assert resolve({"of": field("x"), "or": first(field("y"), 1)}, forged, RESULTS) == {
        "of": {"$done": ["a"]}, "or": {"$from": ["a", "id"]},
    }  # fmt: skip


@dataclass
class Rated:
    score: int
    risky: bool = False


def rated(request: dict) -> Rated:
    """Rate an order."""


def step(name, *after, **fields):
    return Step(name=name, agent="any", action="do", after=list(after), undo=None, **fields)


def compute(payload):
    return payload


A = step("a")
MAYBE = step("b", "a", when=result("a", "more"))
PASSES = step("b", "a", refused={"no": "pass"})


@pytest.mark.parametrize(
    "steps",
    [
        [A, MAYBE, step("c", "b", request={"id": result("b", "id", default=1)})],
        [A, MAYBE, step("c", "b", request={"id": first(result("b", "id"), result("a", "id"))})],
        [A, MAYBE, step("c", "b", when=done("b"), request={"id": result("b", "id")})],
        # the same condition is as good
        [A, MAYBE, step("c", "b", when=result("a", "more"), request={"id": result("b", "id")})],
        [
            A, MAYBE, step("c", "b", when=done("b")),
            step("d", "c", when=done("c"), request={"id": result("b", "id")}),
        ],
        [A, PASSES, step("c", "b", when=passed("b"))],
        [A, PASSES, step("c", "b", when=passed("b", "no"))],
        [A, step("b", "a", refused={"*": "pass", "fraud": "undo"}), step("c", "b", when=passed("b", "x"))],
        # a step that comes before neither, and is asked for as it stands then
        [A, step("b", when=not_(done("a")))],
        [Step(name="b", agent="any", action="do", when=field("x"), undo="back",
              undo_request={"id": result("b", "id")})],
        [step("b", when=False)],
        [Step(name="b", compute=compute, refused={"x": "pass"}, when=field("x"))],
    ],
)  # fmt: skip
def test_sound_declarations_are_accepted(steps):
    assert own_problems(Workflow(name="w", steps=steps)) == []


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([A, MAYBE, step("c", "b", request={"id": result("b", "id")})],
         "step 'c': its request takes the result of 'b', which may be skipped"),
        ([A, PASSES, step("c", "b", request={"id": result("b", "id")})],
         "takes the result of 'b', which may be skipped"),
        ([A, MAYBE, step("c", "b", when=result("b", "id"))],
         "its when takes the result of 'b', which may be skipped"),
        ([A, step("b", "a", when=field("x"), refused={"no": "pass"}),
          step("c", "b", when=field("x"), request={"id": result("b")})],
         "takes the result of 'b', which may be skipped"),
        ([A, step("b", when=result("a", "x"))], "its when takes the result of 'a', which need not be done"),
        ([A, step("b", "a", when=passed("a"))], "'a' is passed over, and none of its refusals is"),
        ([A, PASSES, step("c", "b", when=passed("b", "yes"))],
         "'b' is passed over for 'yes', and that is not in its refused"),
        ([A, PASSES, step("c", when=passed("b"))], "'b' is passed over, which need not have ended before it"),
        ([A, PASSES, step("c", "b", when=passed("d"))], "'d' ended, which is not one of its steps"),
        ([step("a", when=done("b")), step("b", "a")], "'b' is done, and that comes later"),
        ([step("a", when=done("a"))], "'a' is done, and that comes later"),
        ([step("a", when="sort.ships")], "its when is 'sort.ships', always the same"),
        ([step("a", when={"x": compute})], "its when has at 'x' the function compute"),
        ([step("a", refused={"no": "skip"})], "after 'no' follows 'skip'"),
        ([step("a", refused=["no"])], "refused is a list, not a dict of codes"),
        ([step("a", refused={3: "pass"})], "refused has 3, not the code of a refusal"),
        ([step("a", when=loaded("x"))], "its when takes what is loaded"),
        ([step("a", request={"x": first(loaded("x"), 1)})], "first(…) takes what is loaded"),
    ],
)  # fmt: skip
def test_unsound_declarations_are_named(steps, problem):
    texts = [unsound.text for unsound in own_problems(Workflow(name="w", steps=steps))]
    assert any(problem in text for text in texts), texts


def test_condition_on_a_value_that_a_result_need_not_have_is_named():
    sort = Step(name="a", compute=rated)
    workflow = Workflow(name="w", steps=[sort, step("b", "a", when=result("a", "risky"))])
    texts = [problem.text for problem in problems(workflow, {})]
    assert any("'risky' of the result of 'a', which need not have it" in text for text in texts)
    named = step("b", "a", when=result("a", "risky", default=False))
    texts = [problem.text for problem in problems(Workflow(name="w", steps=[sort, named]), {})]
    assert not any("need not have it" in text for text in texts)
