"""What a workflow's tasks take, as far as templates and actions tell it."""

import pytest

from orchestration import registry
from orchestration.agents.actions import action
from orchestration.agents.base import Agent
from orchestration.agents.input_schema import input_schema
from orchestration.payloads.placeholders import field, first, key, not_, result
from orchestration.workflows.step import Step
from orchestration.workflows.workflow import Workflow

QUANTITY = {"type": "integer", "minimum": 1}


class Store(Agent):
    name = "store"

    @action(
        accepts={"type": "object", "properties": {"count": QUANTITY, "lines": {"type": "array"}}}
    )
    async def take(self, call):
        return {}

    @action
    async def put_back(self, call):
        return {}


@pytest.fixture(autouse=True)
def _store(monkeypatch):
    monkeypatch.setitem(registry.agents, "store", Store)


def schema_of(request, **options):
    step = Step(name="take", agent="store", action="take", request=request, undo="put_back",
                undo_request={"key": key("take"), "why": field("reason")})  # fmt: skip
    return input_schema(Workflow(name="w", steps=[step], **options))


def test_fields_have_the_types_of_what_takes_them():
    schema = schema_of(
        {"count": field("n"), "lines": [field("first")], "note": field("note"), "of": result("x")}
    )
    assert schema["properties"] == {"n": QUANTITY, "first": {}, "note": {}, "reason": {}}
    assert schema["required"] == ["n", "first", "note", "reason"]


def test_field_with_a_default_is_optional():
    schema = schema_of(
        {"count": field("n", default=1), "note": first(field("note"), field("order", "note"))},
        contact=field("order", "to"),
    )
    assert schema["properties"]["n"] == QUANTITY
    assert schema["properties"]["note"] == {}
    assert schema["properties"]["order"]["properties"].keys() == {"to", "note"}
    assert schema["properties"]["order"]["required"] == ["to"]
    assert schema["required"] == ["order", "reason"]


def test_fields_of_conditions_are_taken_too():
    steps = [
        Step(name="a", agent="store", action="take", undo=None, when=not_(field("gift"))),
        Step(name="b", agent="store", action="take", undo=None, when=field("sent", default=False)),
    ]
    schema = input_schema(Workflow(name="w", steps=steps))
    assert schema["properties"].keys() == {"gift", "sent"}
    assert schema["required"] == ["gift"]


def test_fields_inside_of_others_are_objects():
    schema = schema_of({"count": field("order", "n")}, contact=field("order", "to", "email"))
    assert schema["properties"]["order"] == {
        "type": "object",
        "required": ["to", "n"],
        "properties": {
            "to": {
                "type": "object",
                "required": ["email"],
                "properties": {"email": {"type": "string"}},
            },
            "n": QUANTITY,
        },
    }


def test_value_is_money():
    value = {"amount": field("total"), "currency": field("currency")}
    properties = schema_of({}, value=value)["properties"]
    assert properties["total"] == {"type": "integer"}
    assert properties["currency"] == {"type": "string"}


def test_each_registered_workflow_has_a_schema():
    assert registry.workflows
    for workflow in registry.workflows.values():
        schema = input_schema(workflow)
        assert {path[0] for path in workflow.fields} == set(schema["required"])
        assert set(schema["required"]) <= schema["properties"].keys()
