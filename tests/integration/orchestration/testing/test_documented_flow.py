"""The workflow of docs/use/workflows.md whose steps may be skipped is run as it stands."""

import re
from dataclasses import replace

import pytest
from django.core import checks

from orchestration import api, registry
from orchestration.testing import outcomes
from sasweb.stack.folders import PROJECT
from tests.support.markdown import blocks

PAGE = (PROJECT / "docs" / "use" / "workflows.md").read_text()
SECTION = PAGE.partition("### Steps that are not needed\n")[2].partition("\n### ")[0]
MESSAGES = re.findall(r"^\| E015 \| `(.+)` \|$", PAGE, re.MULTILINE)
ACTIONS = {
    "bank": ("charge", "refund"), "carrier": ("book", "cancel", "watch"),
    "post_office": ("book", "cancel"), "mail": ("send",),
}  # fmt: skip


def agent(name, actions):
    """Return an agent with these actions."""

    async def call(self, call):
        return await self.post(call, "/", body=call.payload)

    known = {action: api.action(call) for action in actions}
    return type(name, (api.HttpAgent,), {"name": name, "base_url": "http://127.0.0.1:9", **known})


@pytest.fixture
def gift(monkeypatch):
    """The page's workflow, registered until the test ends."""
    for table in ("agents", "workflows"):
        monkeypatch.setattr(registry, table, dict(getattr(registry, table)))
    for name, actions in ACTIONS.items():
        api.register(agent(name, actions))
    (block,) = blocks(SECTION, "python")
    names = {name: getattr(api, name) for name in api.__all__}
    exec(compile(block, "docs/use/workflows.md", "exec"), names)
    return names["gift"]


@pytest.fixture
def shop(gift, run):
    for call in ("bank.charge", "carrier.book", "post_office.book"):
        run.script(call, outcomes.done(id=call))
    return run


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("data", "refused", "skipped", "letter"),
    [
        (
            {"digital": False, "cents": 900}, False, {"post"},
            {"paid": "bank.charge", "parcel": "carrier.book"},
        ),
        (
            {"digital": True, "cents": 0}, False, {"pay", "ship", "post", "track"},
            {"paid": "nothing to pay", "parcel": "none"},
        ),
        (
            {"digital": False, "cents": 0}, True, {"pay", "ship", "track"},
            {"paid": "nothing to pay", "parcel": "post_office.book"},
        ),
    ],
)  # fmt: skip
def test_workflow_of_the_page(shop, data, refused, skipped, letter):
    if refused:
        shop.script("carrier.book", outcomes.rejected("not_served"))
    task = shop.submit("gift", data)
    shop.go()
    assert task.state == "processed"
    assert {name for name, state in task.steps.items() if state == "skipped"} == skipped
    assert shop.calls("mail.send")[0].payload == letter


WRONG = {
    "letter": {"request": {"paid": api.result("pay", "id")}},
    "post": {"when": api.passed("ship", "no_route")},
    "pay": {"when": "sort.costs"},
    "ship": {"refused": {"not_served": "skip"}},
}


@pytest.mark.parametrize("step", WRONG)
def test_message_of_the_page_is_that_of_the_check(gift, step):
    steps = [
        replace(declared, **WRONG[step]) if declared.name == step else declared
        for declared in gift.steps
    ]
    registry.workflows["gift"] = replace(gift, steps=steps)
    messages = [problem.msg for problem in checks.run_checks() if problem.id.endswith("E015")]
    assert [message for message in messages if f"step '{step}'" in message] == [
        message for message in MESSAGES if f"step '{step}'" in message
    ]
    assert messages


def test_every_message_of_the_page_is_compared():
    assert len(MESSAGES) == len(WRONG)
