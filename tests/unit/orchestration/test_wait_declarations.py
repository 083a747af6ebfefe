"""What start-up refuses of steps that end later, or wait for their time."""

import pytest

from orchestration.decisions.flow import Flow
from orchestration.declarations.workflows import own_problems
from orchestration.payloads.placeholders import done, field, loaded, passed, result
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
        [called(not_before=3 * 24 * 3600), called(name="b", not_before=field("at"))],
        [called(not_before="2030-01-31T12:00:00+02:00"), Step(name="b", compute=dict, not_before=0)],
        [called(), called(name="b", after=["a"], not_before=result("a", "at"))],
        [called(when=field("x")),
         called(name="b", after=["a"], not_before=result("a", "at", default=None))],
        [Step(name="a", person="x", not_before=60, when=field("x"))],
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
        (called(away_after=0), "its away_after is 0, not seconds"),
        (Step(name="a", person="x", away_after=60), "calls no agent whose service may be away"),
        (Step(name="a", person="x", ends_within="soon"), "its ends_within is 'soon', not seconds"),
        (Step(name="a", person="x", late="skip"), "its late is 'skip'"),
        (Step(name="a", person="x", remind=60), "its remind is 60, not a list of seconds"),
        (Step(name="a", person="x", remind=[60, 10]), "each later than the one before"),
        (Step(name="a", person="x", returns=3), "its returns is 3, not a type or a JSON Schema"),
        (called(late="pass"), "may still be done, so it is not passed over as late"),
        (called(returns=SCHEMA), "returns is of steps that await a person or a signal"),
        (Step(name="a", compute=dict, ends_within=5), "is computed at once"),
        (called(not_before=-1), "its not_before -1 is neither a number of seconds nor a time"),
        (called(not_before=True), "its not_before True is neither a number of seconds nor a time"),
        (called(not_before="soon"), "its not_before 'soon' is not a time"),
        (called(not_before="2030-01-31T12:00"), "its not_before '2030-01-31T12:00' has no offset"),
        (called(not_before=[60]), "its not_before [60] is neither a number of seconds nor a time"),
        (called(not_before={"at": {1}}), "its not_before has at 'at' a set, which is not JSON"),
        (called(not_before=loaded("at")), "its not_before takes what is loaded, and is never sent"),
        (
            called(not_before=result("b", "at")),
            "its not_before takes the result of 'b', which need not",
        ),
        (Step(name="a"), "has neither an agent nor a function that computes it, nor a person"),
    ],
)
def test_unsound_declarations_are_named(step, problem):
    texts = texts_of(step)
    assert any(problem in text for text in texts), texts


def test_time_does_not_take_the_result_of_a_step_that_may_be_skipped():
    """It is looked for before the condition is decided, by which such a step would be skipped as well."""
    first = called(when=field("x"))
    texts = texts_of(
        first, called(name="b", after=["a"], when=done("a"), not_before=result("a", "at"))
    )
    assert texts == ["step 'b': its not_before takes the result of 'a', which may be skipped"]


def test_plain_step_stores_nothing_of_waits():
    assert called().flow is None
    assert called(ends_within=5.0).flow == Flow(ends_within=5.0)
    assert called(not_before=60).flow == Flow(not_before=60)
