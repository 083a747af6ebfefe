"""Mistakes in declarations are found when Django starts."""

import pytest

from orchestration import registry
from orchestration.api import Agent, Step, Workflow, action, field, key
from orchestration.checks import check_guarded_fields, check_names, check_workflows


class Clerk(Agent):
    name = "clerk"

    @action
    async def stamp(self, call):
        """Do it."""

    @action
    async def erase(self, call):
        """Undo it."""


@pytest.fixture
def found(monkeypatch):
    """Return what the checks find in one step of a workflow."""
    monkeypatch.setitem(registry.agents, "clerk", Clerk)

    def find(**fields):
        step = Step(**{"name": "a", "agent": "clerk", "action": "stamp", **fields})
        monkeypatch.setattr(registry, "workflows", {"w": Workflow(name="w", steps=[step])})
        return [(error.id.removeprefix("orchestration."), error.msg) for error in check_workflows()]

    return find


@pytest.mark.parametrize(
    "fields",
    [
        {"undo": "erase", "undo_request": {"key": key("a"), "page": field("page")}},
        {"undo": None},
        {"irreversible": "ink does not come off"},
        {"undo": None, "irreversible": "ink does not come off"},
        {"agent": "", "action": "", "compute": dict},
    ],
)
def test_each_declaration_of_an_undo_is_accepted(found, fields):
    assert found(**fields) == []


@pytest.mark.parametrize(
    ("fields", "identifier", "problem"),
    [
        ({"undo": None, "agent": "clark"}, "E002", "names agent 'clark'; did you mean 'clerk'?"),
        ({"undo": None, "action": "stmp"}, "E003", "names action 'stmp' of 'clerk'; did you mean"),
        ({"undo": "erse"}, "E003", "names action 'erse' of 'clerk'; did you mean 'erase'?"),
        ({}, "E005", "does not say how it is undone"),
        ({"undo": "erase", "irreversible": "ink"}, "E005", "is irreversible, but names the undo"),
        ({"undo": None, "undo_request": {"key": 1}}, "E005", "has an undo_request, but names no"),
        (
            {"undo": "erase", "undo_request": {"key": key("b")}},
            "E001",
            "its undo_request takes the key of 'b', which need not be done before it",
        ),
    ],
)
def test_mistakes_are_reported_with_a_sentence(found, fields, identifier, problem):
    ((reported, message),) = found(**fields)
    assert reported == identifier
    assert message.startswith("workflow 'w': step 'a'")
    assert problem in message


def test_step_without_undo_declaration_gets_a_hint(found):
    found()
    assert "undo=None" in check_workflows()[0].hint


def test_invalid_names_are_reported(monkeypatch, settings):
    monkeypatch.setitem(registry.agents, "a" * 61, Clerk)
    monkeypatch.setitem(registry.agents, "b" * 60, Clerk)
    settings.RQ_QUEUES = {**settings.RQ_QUEUES, "q" * 101: {}, f"status.{'s' * 60}": {}}
    errors = check_names()
    assert [error.id for error in errors] == ["orchestration.E006"] * 2
    assert errors[0].msg == f"the name of the agent '{'a' * 61}' has 61 characters; at most 60 fit"


def test_mistyped_guarded_field_is_found(monkeypatch):
    class Cashier(Agent):
        name = "cashier"

        @action(accepts={"properties": {"amount": {}}}, guarded=("amount", "amuont"))
        async def charge(self, call):
            """Do it."""

    assert check_guarded_fields() == []
    monkeypatch.setitem(registry.agents, "cashier", Cashier)
    (error,) = check_guarded_fields()
    assert (error.id, "'amuont'" in error.msg) == ("orchestration.E020", True)
