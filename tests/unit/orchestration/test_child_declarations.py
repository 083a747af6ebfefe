"""Mistakes in the declaration of steps with child tasks are found when Django starts."""

import pytest

from orchestration import registry
from orchestration.api import Step, Workflow, done, field, item, key, loaded, passed, result
from orchestration.checks import check_workflows


def child(name="parcel", **fields):
    step = Step(
        name="pack", compute=dict, request={"to": field("house"), "at": field("day", "time")}
    )
    return Workflow(name=name, steps=[step], **fields)


def parcels(**fields):
    known = {
        "name": "parcels", "workflow": "parcel", "each": field("houses"),
        "request": {"house": item("id"), "day": {"time": 1}},
    }  # fmt: skip
    return Step(**{**known, **fields})


def errors_of(monkeypatch, *workflows):
    monkeypatch.setattr(registry, "workflows", {each.name: each for each in workflows})
    return [f"{error.id.removeprefix('orchestration.')} {error.msg}" for error in check_workflows()]


def of_steps(monkeypatch, *steps, **fields):
    return errors_of(monkeypatch, Workflow(name="w", steps=list(steps), **fields), child())


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"each": [1, 2], "enough": 1},
        {"each": None, "request": {"house": 1, "day": field("day")}},
        {"request": item()},
        {"request": {"house": item(), "day": item("day", default={})}},
        {"refused": {"child_undone": "undo"}, "late": "undo", "ends_within": 60, "remind": [30]},
        {"when": field("ships")},
    ],
)
def test_each_declaration_of_children_is_accepted(monkeypatch, fields):
    assert of_steps(monkeypatch, parcels(**fields)) == []


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"workflow": "parcle"},
            "E019 workflow 'w': step 'parcels' names the workflow 'parcle'; did you",
        ),
        (
            {"workflow": 7},
            "E019 workflow 'w': step 'parcels': its workflow is 7, not the name of one",
        ),
        ({"workflow": ""}, "has each or enough, and no workflow of its children"),
        ({"each": "houses"}, "its each is 'houses', not a list, or a template of one"),
        ({"each": [dict]}, "its each has at '0' the class dict, which is not JSON"),
        ({"enough": 0}, "its enough is 0, not a number of children"),
        ({"enough": True}, "its enough is True, not a number of children"),
        (
            {"compute": dict},
            "has child tasks, and an agent, a function, a person or a signal as well",
        ),
        ({"agent": "bank", "action": "pay"}, "has child tasks, and an agent"),
        ({"person": "fraud"}, "has child tasks, and an agent"),
        ({"undo": "x"}, "has child tasks, whose own undo it is"),
        ({"undo_request": {"key": key("parcels")}}, "has child tasks, whose own undo it is"),
        ({"irreversible": "it is gone"}, "has child tasks, whose own undo it is"),
        ({"policy": {"failure_threshold": 2}}, "it takes no policy and no returns"),
        ({"returns": dict}, "it takes no policy and no returns"),
        ({"late": "pass"}, "has child tasks, which go on when it is late: it is not passed over"),
        (
            {"refused": {"*": "pass"}},
            "the one code that is decided about is 'child_undone', not '*'",
        ),
        ({"each": None}, "its request takes an item, and it is made for none: each="),
        ({"when": item("x")}, "its when takes an item"),
        (
            {"each": result("a")},
            "its each takes the result of 'a', which need not be done before it",
        ),
        (
            {"request": {"house": loaded("x"), "day": field("day")}},
            "takes what is loaded, and is never",
        ),
        (
            {"request": {"house": item()}},
            "E010 workflow 'w': step 'parcels' gives children of 'parcel' no",
        ),
        (
            {"request": {"hous": 1, "day": {"time": 1}}},
            "no 'house', which they take; did you mean 'hous'?",
        ),
        ({"request": {"house": 1, "day": {"hour": 1}}}, "no 'day.time', which they take"),
    ],
)
def test_mistakes(monkeypatch, fields, problem):
    errors = of_steps(monkeypatch, parcels(**fields))
    assert any(problem in error for error in errors), errors


def test_step_with_children_is_not_passed_over(monkeypatch):
    after = Step(
        name="after", compute=dict, after=["parcels"], when=passed("parcels", "child_undone"),
        request=result("parcels"),
    )  # fmt: skip
    (problem,) = of_steps(monkeypatch, parcels(refused={"child_undone": "pass"}), after)
    assert "is passed over for 'child_undone'" in problem


def test_result_of_children_has_items_only(monkeypatch):
    after = Step(
        name="after", compute=dict, after=["parcels"], request={"x": result("parcels", "item")}
    )
    (problem,) = of_steps(monkeypatch, parcels(), after)
    assert "takes 'item' of the result of 'parcels'; did you mean 'items'?" in problem


@pytest.mark.parametrize(
    ("outcome", "problem"),
    [
        (
            {"x": result("b")},
            "E019 workflow 'w': its result takes something of 'b', which is none of",
        ),
        ({"x": key("parcels")}, "its result takes something of '$key'"),
        ({"x": item()}, "its result takes something of '$item'"),
        (
            {"x": result("parcels")},
            "E015 workflow 'w': its result takes that of 'parcels', which may be",
        ),
        ("all", "E001 workflow 'w': its result is 'all', not a dict"),
    ],
)
def test_result_of_a_workflow(monkeypatch, outcome, problem):
    errors = of_steps(monkeypatch, parcels(when=field("ships")), result=outcome)
    assert any(problem in error for error in errors), errors
    fine = {"x": result("parcels", default=None), "y": field("ships"), "z": done("parcels")}
    assert of_steps(monkeypatch, parcels(when=field("ships")), result=fine) == []


def test_children_are_not_submitted(monkeypatch):
    parent = Workflow(name="w", steps=[parcels()])
    for fields in ({"record": print}, {"private": ["x"]}):
        (problem,) = errors_of(monkeypatch, parent, child(**fields))
        assert "makes children of 'parcel', which has record or private" in problem


def test_children_without_end(monkeypatch):
    def workflow(name, of, **fields):
        request = {"rest": field("rest"), "more": field("more")}
        step = Step(**{"name": "next", "workflow": of, "request": request, **fields})
        return Workflow(name=name, steps=[step])

    problems = errors_of(monkeypatch, workflow("a", "b"), workflow("b", "a"), workflow("c", "a"))
    assert [problem.split("'")[1] for problem in problems] == ["a", "b"]
    assert "its tasks make children without end" in problems[0]
    assert (
        errors_of(
            monkeypatch, workflow("a", "b"), workflow("b", "a", each=field("rest"), request=item())
        )
        == []
    )
    assert errors_of(monkeypatch, workflow("a", "a", when=field("more"))) == []
