"""Mistakes in declared schedules are found when Django starts."""

from datetime import UTC, datetime

import pytest

from orchestration import registry
from orchestration.api import Schedule, Step, Workflow, field, register
from orchestration.checks import check_names, check_schedules

START = datetime(2026, 1, 1, tzinfo=UTC)
NIGHTLY = {"name": "nightly", "workflow": "w", "data": {"kind": "sales"}, "cron": "0 2 * * *"}


@pytest.fixture
def declare(monkeypatch):
    """Return what the checks find in one schedule."""
    step = Step(
        name="a", compute=dict, request={"kind": field("kind"), "at": field("at", default="")}
    )
    monkeypatch.setattr(registry, "workflows", {"w": Workflow(name="w", steps=[step])})
    monkeypatch.setattr(registry, "schedules", {})

    def find(**values):
        register(Schedule(**{**NIGHTLY, **values}))
        return [(error.id.removeprefix("orchestration."), error.msg) for error in check_schedules()]

    return find


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"zone": "Europe/Berlin", "due_field": "at", "jitter": 600.0},
        {"cron": "", "every": 60, "start_at": START, "overlap": "queue", "catch_up": "all"},
        {"data": {}, "due_field": "kind"},
    ],
)
def test_schedule_without_mistakes_has_no_problem(declare, values):
    assert declare(**values) == []


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"cron": ""}, "Give either a cron expression, or a number of seconds"),
        ({"every": 60, "start_at": START}, "Give either a cron expression, or a number of seconds"),
        ({"start_at": START}, "its start_at: Only what recurs"),
        ({"cron": "", "every": 60}, "its start_at: Say from which time"),
        ({"cron": "", "every": 60, "start_at": START.replace(tzinfo=None)}, "has no time zone"),
        ({"cron": "", "every": 60, "start_at": START.replace(microsecond=5)}, "whole second"),
        ({"cron": "", "every": 60, "start_at": START.replace(year=9500)}, "its start_at: It is not in"),
        ({"cron": "", "every": -1, "start_at": START}, "its every: It is between"),
        ({"cron": "", "every": True, "start_at": START}, "is not a whole number"),
        ({"cron": "2 o'clock"}, "its cron: A cron expression has five fields"),
        ({"zone": "Mars"}, "its zone: There is no time zone 'Mars'"),
        ({"workflow": "v"}, "its workflow: There is no workflow 'v'"),
        ({"data": {}}, "The input has no kind"),
        ({"data": {"kinds": 1}}, "The input has no kind"),
        ({"overlap": "skipp"}, "its overlap: 'skipp' is unknown; did you mean 'skip'?"),
        ({"catch_up": "all"}, "its catch_up: To catch up all"),
        ({"catch_up_within": 10**9}, "its catch_up_within: "),
        ({"jitter": 86_400.0}, "its jitter: It must be less than the time between two due times"),
        ({"jitter": "5"}, "its jitter: '5' is not a number"),
        ({"jitter": float("nan")}, "its jitter: "),
        ({"cron": None}, "its cron: None is not a text"),
    ],
)  # fmt: skip
def test_mistake_is_found_with_a_sentence(declare, values, sentence):
    ((kind, text),) = declare(**values)
    assert kind == "E018"
    assert text.startswith("schedule 'nightly': ")
    assert sentence in text


@pytest.mark.parametrize("name", ["a/b", "", "n" * 61, 7])
def test_name_that_no_reference_can_begin_with_is_refused(declare, name):
    assert {kind for kind, _ in declare(name=name)} == {"E006"}


def test_two_schedules_of_one_name_are_found(declare, monkeypatch):
    monkeypatch.setattr(registry, "registered_twice", [])
    monkeypatch.setattr(registry, "_places", {})
    declare()
    register(Schedule(**NIGHTLY))
    assert [error.id for error in check_names()] == ["orchestration.E009"]
