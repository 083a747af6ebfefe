"""A step without an agent: its function is called, and its result or exception is a reply."""

from uuid import UUID

import pytest

from orchestration import conf, registry
from orchestration.agents.errors import Rejected
from orchestration.agents.local import perform
from orchestration.messaging.messages import Reply, Request
from orchestration.workflows.step import Step
from orchestration.workflows.workflow import Workflow

TASK = UUID("0197a000-0000-7000-8000-000000000000")


def request(**payload) -> Request:
    return Request(
        step=7, task=TASK, name="sum", attempt=3, action="", key="k", reference="42",
        complete_by=0.0, call_timeout=0.0, tries=1, payload=payload, mode="do", generation=2,
    )  # fmt: skip


@pytest.fixture
def computed(monkeypatch):
    """Return what a function makes of a request."""

    def reply(function, **payload) -> Reply:
        step = Step(name="sum", compute=function, request={})
        monkeypatch.setitem(registry.workflows, "w", Workflow(name="w", steps=[step]))
        reply = perform("w", request(**payload), "scheduler-1")
        assert reply is not None
        Reply.parse(reply.dump())  # it can be recorded
        return reply

    return reply


def test_result_is_the_functions_return_value(computed):
    reply = computed(lambda payload: {"total": sum(payload["prices"])}, prices=[2, 3])
    assert (reply.outcome, reply.result) == ("done", {"total": 5})
    assert (reply.step, reply.task, reply.attempt, reply.generation) == (7, TASK, 3, 2)
    assert reply.by == "scheduler-1"


def test_rejection_keeps_its_code(computed):
    def refuse(_):
        raise Rejected("too_much", "more than one may order")

    reply = computed(refuse)
    assert (reply.outcome, reply.code) == ("rejected", "too_much")
    assert reply.message == "more than one may order"


def raises(_):
    raise ZeroDivisionError("by \0 zero")


def deep(_):
    value = {}
    for _ in range(200):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (raises, "ZeroDivisionError: by"),
        (lambda payload: payload["missing"], "KeyError: 'missing'"),
        (lambda _: None, "Malformed: not a reply: Expected `object`, got `null`"),
        (lambda _: [1], "Malformed: not a reply: Expected `object`, got `array`"),
        (lambda _: {"at": object()}, "TypeError: Encoding objects of type object"),
        (
            lambda _: {"much": float("inf")},
            "Malformed: Out of range float values are not JSON compliant",
        ),
        (lambda _: {"text": "\0"}, "Malformed: NUL characters cannot be stored"),
        (lambda _: {"text": "x" * 300_000}, "Malformed: 300"),
        (deep, "Malformed: nested deeper"),
    ],
)
def test_other_exception_is_an_error_of_this_step_alone(computed, function, words):
    reply = computed(function)
    assert (reply.outcome, reply.code, reply.result) == ("rejected", "compute_failed", {})
    assert reply.message.startswith(words)


def test_unknown_function_is_left_to_other_code(monkeypatch):
    plain = Workflow(name="w", steps=[Step(name="other", agent="a", action="b", undo=None)])
    monkeypatch.setattr(registry, "workflows", {"w": plain})
    assert perform("w", request(), "scheduler-1") is None
    assert perform("gone", request(), "scheduler-1") is None


@pytest.mark.parametrize(("limit", "warned"), [(0.0, True), (60.0, False)])
def test_slow_function_is_logged_as_a_warning(computed, monkeypatch, caplog, limit, warned):
    monkeypatch.setattr(conf, "SLOW_COMPUTE_S", limit)
    computed(lambda _: {})
    assert ("meanwhile the transaction kept its locks" in caplog.text) is warned
