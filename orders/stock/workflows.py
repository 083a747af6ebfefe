"""The workflows about the stock, and the schedule that has it read."""

from collections.abc import Sequence
from datetime import UTC, datetime

from django.conf import settings

from orchestration import api
from orchestration.api import Schedule, Status, StatusKind, Step, Workflow, field
from orders.lifecycle.message import APPLICATION

from . import corrections, levels
from .corrections import ADJUST
from .levels import CORRECTING, READ, READING

READ_WORKFLOW = Workflow(
    # neither is one of the shop's own (`owner_application`): the public web process may post those
    name=READING,
    not_by_hand="Its schedule starts it: have that run now.",
    background=True,
    keep_days=7,  # there are hundreds a day
    steps=[
        Step(
            name=READ,
            agent="inventory",
            action="levels",
            request={"sku": None, "after": field("after", default=None)},
            # the next task asks again, and no person is called
            refused={"*": "pass"},
            undo=None,
        ),
    ],
)
CORRECT_WORKFLOW = Workflow(
    name=CORRECTING,
    label=lambda data: f"{data['sku']} in {data['warehouse']}"[:100],
    personal=[field("reason")],
    not_by_hand="Stock is corrected in the admin: the page of the product leads to the form.",
    steps=[
        Step(
            name=ADJUST,
            agent="inventory",
            action="adjust",
            request={
                "sku": field("sku"),
                "warehouse": field("warehouse"),
                "units": field("units"),
                "expected": field("expected"),
            },
            # who counted sees it, and counts again; all else is for operators
            refused={
                "level_changed": "pass", "not_on_hand": "pass", "unknown_sku": "pass", "*": "error",
            },
            irreversible="the goods are counted: correct them once more",
        ),
        Step(
            name=READ,
            agent="inventory",
            action="levels",
            after=[ADJUST],
            request={"sku": field("sku"), "after": None},
            refused={"*": "pass"},
            undo=None,
        ),
    ],
)  # fmt: skip
SCHEDULE = Schedule(
    name="stock",
    workflow=READING,
    every=settings.STOCK_READ_EVERY or 300,
    start_at=datetime(2026, 1, 1, tzinfo=UTC),
    # `skip`, so that an outage of the inventory has one task waiting; the levels of an hour ago are none
    catch_up_within=60,
    reply_to=APPLICATION,
)
REPORTED = {StatusKind.COMPLETED, StatusKind.FAILED, StatusKind.UNDONE}
SCHEDULES = (SCHEDULE,) if settings.STOCK_READ_EVERY else ()


def receive(messages: Sequence[Status]) -> None:
    """Keep what was read, and settle what was corrected (a query for each message about it)."""
    reported = [
        (message, progress)
        for message in messages
        if message.workflow in {READING, CORRECTING}
        and message.kind in REPORTED
        # only owners are sent it
        and (progress := api.progress(message.workflow, message.reference))
    ]
    levels.receive(reported)
    corrections.receive(reported)
