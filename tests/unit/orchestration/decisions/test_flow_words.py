"""Conditions and refusals in words."""

import pytest

from orchestration.decisions.flow import Flow
from orchestration.decisions.flow_words import (
    condition,
    refusals,
    stored,
    template_words,
    why_skipped,
)
from orchestration.payloads.placeholders import (
    done,
    field,
    first,
    key,
    loaded,
    not_,
    passed,
    result,
)


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (result("sort", "ships"), "sort.ships"),
        (result("sort"), "sort"),
        (field("gift", "wrapped"), "input.gift.wrapped"),
        (not_(field("gift")), "not input.gift"),
        (not_(not_(field("gift"))), "input.gift"),
        (done("a"), "a is done"),
        (not_(done("a")), "a is not done"),
        (not_(not_(done("a"))), "a is done"),
        (passed("a"), "a is passed over"),
        (passed("a", "not_served"), "a is passed over (not_served)"),
        (not_(passed("a", "x", "y")), "a is not passed over (x or y)"),
        (result("a", "risky", default=False), "a.risky or else false"),
        (not_(result("a", "risky", default=False)), "not (a.risky or else false)"),
        (first(result("a", "id"), field("id"), "none"), 'a.id or else input.id or else "none"'),
        (loaded("name"), "loaded.name"),
        (key("a"), "the key of a"),
        ({"of": result("a"), "n": [1, field("x")]}, "{of: a, n: [1, input.x]}"),
        ({"of": None}, "{of: null}"),
        ({}, "{}"),
        ("text", '"text"'),
    ],
)
def test_template_in_words(template, words):
    assert template_words(template) == words


def test_condition_of_a_step():
    assert condition(None) == condition(Flow()) == condition(Flow(refused={"x": "pass"})) == ""
    assert condition(Flow(when=False)) == "false"
    assert condition(Flow(when=done("a"))) == "a is done"


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        ({}, ""),
        ({"not_served": "pass"}, "not_served is passed over"),
        ({"*": "pass"}, "any refusal is passed over"),
        ({"*": "undo"}, "any refusal undoes the task"),
        (
            {"*": "error", "b": "pass", "a": "wait"},
            "b is passed over; a waits for a fix, then undoes the task; any other is an error, for a person",
        ),
    ],
)
def test_what_follows_refusals(refused, words):
    assert refusals(Flow(refused=refused)) == words
    assert refusals(None) == ""


def test_why_a_step_was_skipped():
    flow = Flow(when=result("sort", "ships"), refused={"no": "pass"})
    assert why_skipped(flow, "", "") == "not needed: its condition does not hold (sort.ships)"
    assert why_skipped(flow, "rejected", "no") == "not needed: refused with no, and passed over"
    assert why_skipped(None, "", "") == "not needed"


@pytest.mark.parametrize("value", [None, {}, "it is nested too deeply", {"refused": 3}, [1]])
def test_other_values_than_declarations_have_no_words(value):
    assert stored(value) is None


def test_stored_declaration_is_read():
    assert stored({"when": done("a"), "refused": {"x": "pass"}}) == Flow(
        when=done("a"), refused={"x": "pass"}
    )
