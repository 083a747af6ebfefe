"""What start-up refuses of steps that end later."""

import pytest

from orchestration.decisions.flow import Flow
from orchestration.declarations.workflows import own_problems
from orchestration.payloads.placeholders import field, passed, result
from orchestration.workflows.step import Step
from orchestration.workflows.workflow import Workflow

SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}}


def called(**fields):
    return Step(**{"name": "a", "agent": "any", "action": "do", "undo": None, **fields})


def texts_of(*steps):
    return [problem.text for problem in own_problems(Workflow(name="w", steps=list(steps)))]


@pytest.mark.parametrize(
    "steps",
    [
        [Step(name="a", person="fraud", returns=SCHEMA, ends_within=60, late="pass", remind=[10, 30])],
        [Step(name="a", signal="goods", ends_within=field("until"))],
        [called(ends_within=600.0, late="undo")],
        [called(), Step(name="b", person="x", after=["a"], ends_within=result("a", "until"))],
        [Step(name="a", person="x", late="pass"),
         called(name="b", after=["a"], when=passed("a", "late"))],
    ],
)  # fmt: skip
def test_sound_declarations_are_accepted(steps):
    assert texts_of(*steps) == []


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (Step(name="a", person=3), "its person is 3, not a name"),
        (Step(name="a", signal="x" * 61), "not a name of at most 60 characters"),
        (Step(name="a", person="x", signal="y"), "awaits both a person and a signal"),
        (called(person="x"), "has an agent or a function as well"),
        (Step(name="a", person="x", undo="back"), "so it has no effect to be undone"),
        (Step(name="a", person="x", ends_within=-1), "its ends_within is -1, not seconds"),
        (Step(name="a", person="x", ends_within="soon"), "its ends_within is 'soon', not seconds"),
        (Step(name="a", person="x", late="skip"), "its late is 'skip'"),
        (Step(name="a", person="x", remind=60), "its remind is 60, not a list of seconds"),
        (Step(name="a", person="x", remind=[60, 10]), "each later than the one before"),
        (Step(name="a", person="x", returns=3), "its returns is 3, not a type or a JSON Schema"),
        (called(late="pass"), "may still be done, so it is not passed over as late"),
        (called(returns=SCHEMA), "returns is of steps that await a person or a signal"),
        (Step(name="a", compute=dict, ends_within=5), "is computed at once"),
        (Step(name="a"), "has neither an agent nor a function that computes it, nor a person"),
    ],
)
def test_unsound_declarations_are_named(step, problem):
    texts = texts_of(step)
    assert any(problem in text for text in texts), texts


def test_plain_step_stores_nothing_of_waits():
    assert called().flow is None
    assert called(ends_within=5.0).flow == Flow(ends_within=5.0)
