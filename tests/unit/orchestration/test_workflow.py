from dataclasses import replace
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.declarations.workflows import own_problems
from orchestration.payloads.placeholders import Unresolved, field, key, resolve, result
from orchestration.transitions.first_steps import first_steps
from orchestration.workflows.step import Step
from orchestration.workflows.workflow import Refused, Workflow

TASK = uuid4()


def flow(*steps):
    return Workflow(name="test", steps=list(steps))


def step(name, after=(), **request):
    return Step(name=name, agent="any", action="do", after=list(after), request=request)


def test_valid_workflow_has_no_problems():
    sound = flow(step("a"), step("b", ["a"], x=result("a", "id")), step("c", ["b"], y=result("a")))
    assert own_problems(sound) == []


def compute(payload):
    return payload


async def call(payload):
    return payload


def computed(**fields):
    return flow(Step(name="a", compute=compute, **fields))


def test_local_step_needs_no_undo():
    sound = computed(request={"x": field("x")})
    assert own_problems(sound) == []
    (plan,) = first_steps(sound, {"x": 1}, TASK)
    assert (plan.agent, plan.action, plan.undo_action, plan.irreversible) == ("", "", "", "")
    assert plan.undo_request is None


@pytest.mark.parametrize(
    ("workflow", "problem"),
    [
        (flow(), "it has no steps"),
        (flow(Step(name="a")), "step 'a' has neither an agent nor a function"),
        (computed(agent="any"), "step 'a' has both an agent and a function"),
        (computed(action="do"), "step 'a' has both an agent and a function"),
        (flow(Step(name="a", compute=call)), "step 'a' is computed by a coroutine"),
        (computed(undo="do"), "step 'a' is computed, so it has no effect to be undone"),
        (computed(undo_request={"x": 1}), "step 'a' is computed, so it has no effect"),
        (computed(irreversible="never"), "step 'a' is computed, so it has no effect"),
        (computed(charges={"amount": 1, "currency": "EUR"}), "step 'a' is computed, so it has no"),
        (flow(step("a"), step("a")), "step 'a' is declared twice"),
        (flow(step("a", ["b"])), "step 'a' comes after 'b', which is not one of its steps"),
        (flow(step("a", ["b"]), step("b", ["a"])), "its steps wait for each other in a circle"),
        (
            flow(step("a"), step("b", x=result("a"))),
            "step 'b': its request takes the result of 'a', which need not",
        ),
        (flow(step("a", x=result("a"))), "step 'a': its request takes the result of 'a', which"),
    ],
)
def test_mistakes_are_named(workflow, problem):
    (mistake,) = own_problems(workflow)
    assert mistake.text.startswith(problem)


def test_templates_are_filled_from_input_and_results():
    template = {"to": field("who", "name"), "all": [result("a", "id"), 1], "whole": result("b")}
    data = {"who": {"name": "Ada"}}
    filled = resolve(template, data, {"a": {"id": 7}, "b": {"x": None}})
    assert filled == {"to": "Ada", "all": [7, 1], "whole": {"x": None}}


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ({"a": field("nothing")}, "the input has no nothing"),
        ({"a": field("name", "first")}, "the input has no name.first"),
        ({"a": [result("earlier", "id")]}, "the result of earlier has no id"),
    ],
)
def test_a_missing_value_is_named(template, message):
    with pytest.raises(Unresolved, match=message):
        resolve(template, {"name": "Ada"}, {"earlier": {}})


def test_input_is_not_expanded_as_a_placeholder():
    forged = {"name": {"$from": ["pay", "secret"]}}
    assert resolve({"to": field("name")}, forged, {"pay": {"secret": 1}}) == {"to": forged["name"]}
    waiting = first_steps(flow(step("pay"), step("b", ["pay"], to=field("name"))), forged, TASK)[1]
    assert waiting.request == {"to": {"$from": ["", "name"]}}  # the template, not the input


def test_field_that_a_later_step_needs_is_required_at_once():
    with pytest.raises(Unresolved, match="the input has no card"):
        first_steps(flow(step("a"), step("b", ["a"], card=field("card"))), {}, TASK)
    first_steps(
        flow(step("a"), step("b", ["a"], id=result("a", "id"))), {}, TASK
    )  # results come later


def test_missing_fields_are_all_named_with_suggestions():
    booking = Workflow(
        name="book",
        contact=field("guest", "email"),
        value={"amount": field("total"), "currency": field("currency")},
        personal=[field("note")],  # hidden where it is: it need not be there
        steps=[
            Step(
                name="room",
                agent="any",
                action="book",
                request={"for": field("name"), "same": field("name")},
                undo="cancel",
                undo_request={"id": field("room", "id"), "made": result("room", "id")},
                charges={"amount": field("deposit"), "currency": field("currency")},
            )
        ],
    )
    whole = {"guest": {"email": "a@b"}, "total": 1, "currency": "EUR", "name": "Ada",
             "room": {"id": 7}, "deposit": None}  # fmt: skip
    booking.require(whole)
    with pytest.raises(Unresolved) as missing:
        booking.require({"guest": {"mail": "a@b"}, "nmae": "Ada", "room": 7, "currency": "EUR"})
    assert str(missing.value) == (
        "the input has no guest.email (did you mean 'mail'?), total, name (did you mean 'nmae'?), "
        "room.id, deposit"
    )


def test_irreversible_step_plans_no_undo():
    final = Step(name="a", agent="any", action="do", irreversible="it is published")
    undoable = Step(name="b", agent="any", action="do", undo="take_back")
    plans = first_steps(
        flow(final, undoable, Step(name="c", agent="any", action="do", undo=None)), {}, TASK
    )
    assert [plan.undo_action for plan in plans] == ["", "take_back", ""]
    assert [plan.undo_request for plan in plans] == [None, {}, None]


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text().filter(lambda k: not k.startswith("$")), inner)
    ),
)


@given(json)
def test_template_without_placeholders_is_unchanged(value):
    assert resolve(value, {}, {}) == value


KNOWN = Workflow(
    name="post",
    steps=[Step(name="send", agent="a", action="b", irreversible="it is sent")],
    label=lambda data: data["id"].upper(),
    contact=field("to"),
    value={"amount": field("cents"), "currency": field("money")},
    personal=[field("home")],
)


def test_reference_of_a_task_is_declared_by_its_workflow():
    card = KNOWN.card({"id": "a1" * 60, "to": "Ada@Bath.example", "cents": 120, "money": "EUR"})
    assert card.label == ("A1" * 60)[:100]
    assert (card.contact, card.amount, card.currency) == ("ada@bath.example", 120, "EUR")
    assert own_problems(KNOWN) == []


def test_workflow_without_reference_declaration_has_none():
    card = replace(KNOWN, label=lambda _: "", contact=None, value=None).card({})
    assert (card.label, card.contact, card.amount, card.currency) == ("", "", 0, "")


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ({"id": "a", "to": "b"}, Unresolved),
        ({"id": "a", "to": "b", "cents": "12", "money": "EUR"}, Refused),  # which no retry mends
    ],
)
def test_input_without_the_reference_field_is_refused(data, error):
    with pytest.raises(error):
        KNOWN.card(data)


@pytest.mark.parametrize("known", [{"contact": result("send", "to")}, {"personal": [key("send")]}])
def test_operators_know_a_task_by_its_input_alone(known):
    (problem,) = own_problems(replace(KNOWN, **known))
    assert "takes something else than fields of the input" in problem.text
