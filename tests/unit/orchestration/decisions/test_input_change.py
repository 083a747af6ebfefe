"""Which steps have used a value of the input that changes, and what is sent instead of what was built."""

import pytest

from orchestration.api import done, field, first, key, not_, passed, result
from orchestration.decisions.flow import Flow
from orchestration.decisions.input_change import Templates, input_change, takes
from orchestration.decisions.progress import StepView
from orchestration.payloads.placeholders import Unresolved, resolve

BEFORE = {"to": {"city": "Bath", "street": "Elm"}, "cents": 5}
AFTER = {**BEFORE, "to": {"city": "York", "street": "Elm"}}


@pytest.mark.parametrize(
    ("template", "taken"),
    [
        (field("to"), True),
        (field("to", "city"), True),
        (field("to", "street"), False),
        (field("to", "country"), False),
        (field("cents"), False),
        ({"a": [{"b": field("to", "city")}]}, True),
        (not_(field("to", "city")), True),
        (first(result("a", "city"), field("to", "city")), True),
        (field("to", "city", default="Rome"), True),
        (field(), True),
        (result("to", "city"), False),
        (key("to"), False),
        ([done("to"), passed("to", "city")], False),
        ({"to": {"city": "Bath"}}, False),
        (True, False),
    ],
)
def test_template_takes_what_one_of_its_paths_leads_to(template, taken):
    assert takes(template, BEFORE, AFTER) is taken


def test_value_that_comes_or_goes_is_another_one():
    assert takes(field("x", default=1), {}, {"x": None})
    assert takes(field("x", default=1), {"x": None}, {})


TEMPLATE = {"city": field("to", "city"), "cents": field("cents")}


def step(state="processed", name="a", template=TEMPLATE, **fields):
    waits = state == "waiting"
    values = {
        "id": 1, "task": "t", "name": name, "agent": "carrier", "state": state, "after": (),
        "attempt": 0 if state in ("waiting", "pending", "awaiting", "skipped") else 1,
        "locked_by": None, "request": template if waits else resolve(template, BEFORE, {}),
        "result": {},
    }  # fmt: skip
    return StepView(**{**values, **fields})


def changed(*steps, templates=None, after=AFTER):
    declared = {each.name: Templates(TEMPLATE, None) for each in steps}
    return input_change(steps, {**declared, **(templates or {})}, BEFORE, after)


@pytest.mark.parametrize("state", ["processing", "processed", "error", "awaiting", "pending"])
def test_step_that_was_sent_has_used_what_its_request_took(state):
    follows = changed(step(state, attempt=1))
    assert (follows.taken, follows.rebuilt) == (["a"], [])
    assert changed(step(state, attempt=1), after={**BEFORE, "note": "x"}).taken == []


@pytest.mark.parametrize("state", ["pending", "awaiting"])
def test_request_that_was_built_and_not_sent_is_built_again(state):
    follows = changed(step(state))
    (rebuilt,) = follows.rebuilt
    assert (follows.taken, rebuilt.id) == ([], 1)
    assert rebuilt.request == {"city": "York", "cents": 5}


def test_request_that_takes_nothing_of_the_change_stays():
    follows = changed(step("pending"), after={**BEFORE, "note": "x"})
    assert (follows.taken, follows.rebuilt) == ([], [])


def test_step_whose_request_is_a_template_still_takes_the_new_values_by_itself():
    unbuilt = step("error", attempt=0, error_code="request_not_built", request=TEMPLATE)
    follows = changed(step("waiting"), unbuilt)
    assert (follows.taken, follows.rebuilt) == ([], [])


@pytest.mark.parametrize(
    "fields",
    [
        {"request": {"city": "Paris", "cents": 5}},  # a person changed it
        {"flow": Flow(when=field("to", "city"))},
        {"flow": Flow(ends_within=field("to", "city"))},
        {"state": "error", "attempt": 0, "error_code": "late"},
    ],
    ids=["another request", "condition", "time", "late"],
)
def test_step_that_was_not_sent_may_have_used_it_all_the_same(fields):
    assert changed(step(**{"state": "pending", **fields})).taken == ["a"]


def test_step_that_is_declared_otherwise_by_now_is_not_built_again():
    of_now = Templates({"town": field("to", "city")}, None)
    assert changed(step("pending"), templates={"a": of_now}).taken == ["a"]


def test_step_without_a_declaration_may_have_used_anything():
    assert input_change([step("pending")], {}, BEFORE, AFTER).taken == ["a"]
    assert input_change([step()], {}, BEFORE, {**BEFORE, "note": "x"}).taken == ["a"]
    assert input_change([step("waiting")], {}, BEFORE, AFTER).taken == []


@pytest.mark.parametrize(
    ("fields", "declared"),
    [
        ({"undo_request": {"city": field("to", "city")}}, Templates({}, None)),
        ({}, Templates({}, {"amount": field("to", "city"), "currency": "EUR"})),
        ({"flow": Flow(when=field("to", "city"))}, Templates({}, None)),
    ],
    ids=["undo", "charges", "condition"],
)
def test_sent_step_has_used_what_its_undo_its_charges_and_its_condition_take(fields, declared):
    assert changed(step(**fields), templates={"a": declared}).taken == ["a"]
    assert changed(step(), templates={"a": Templates({}, None)}).taken == []


def test_skipped_step_has_used_what_its_condition_took_and_no_more():
    skipped = step("skipped", request=TEMPLATE)
    assert changed(skipped.altered(flow=Flow(when=field("cents")))).taken == []
    assert changed(skipped.altered(flow=Flow(when=field("to", "city")))).taken == ["a"]
    passed_over = skipped.altered(attempt=1, flow=Flow(refused={"*": "pass"}))
    assert changed(passed_over).taken == ["a"]


def test_undo_steps_are_none_of_these():
    assert changed(step(direction="undo")).taken == []


def test_request_that_cannot_be_built_is_an_error():
    with pytest.raises(Unresolved, match=r"to\.city"):
        changed(step("pending"), after={**BEFORE, "to": {}})


def test_request_takes_results_of_steps_before():
    template = {"city": field("to", "city"), "seat": result("b", "id")}
    before = step(name="b", template={}, result={"id": "s-1"}, id=2)
    later = step("pending", template={}, request={"city": "Bath", "seat": "s-1"})
    follows = changed(
        before, later, templates={"a": Templates(template, None), "b": Templates({}, None)}
    )
    (rebuilt,) = follows.rebuilt
    assert rebuilt.request == {"city": "York", "seat": "s-1"}
