"""A workflow whose second step can be refused, and then waits to be mended."""

from orchestration.models import Step
from orchestration.payloads.placeholders import field, result
from orchestration.transitions.claim import claim
from orchestration.transitions.replies import record
from orchestration.workflows.step import Step as Declared
from orchestration.workflows.workflow import Workflow
from tests.support.engine import new_task, reply_to

PARTY = Workflow(
    name="party",
    permit=lambda asked: None,  # its application sets the price
    value={"amount": field("price"), "currency": field("currency")},
    steps=[
        Declared(
            name="invite", agent="greeter", action="greet", request={"to": field("name")},
            undo="greet", undo_request={"to": result("invite", "id")},
        ),
        Declared(
            name="pay", agent="greeter", action="greet", after=["invite"],
            request={"to": field("name"), "price": field("price")}, undo=None,
            charges={"amount": field("price"), "currency": field("currency")},
        ),
    ],
)  # fmt: skip
DATA = {"name": "Ada", "price": 500, "currency": "EUR"}


def answer(outcome="done", **fields):
    """Answer the one request that is due; return it."""
    (request,) = claim(["greeter"], "scheduler-1").requests["greeter"]
    record([reply_to(request, outcome, **fields)])
    return request


def refused(**fields):
    """Return a task whose second step was refused, and that step."""
    task = new_task("7", workflow="party", data=DATA, reply_to="shop")
    answer()
    answer("rejected", **fields)
    return task, Step.objects.get(task=task, name="pay")
