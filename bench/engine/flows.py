"""The workflows of `bench.flows`: a bank that says later whether a payment is confirmed, and parcels."""

from dataclasses import replace

from django.conf import settings

from bench.engine.workflow import PAY
from orchestration.api import Step, Workflow, field, item, register

CAPTURE = Step(
    name="capture", agent=settings.CALLERS[0], action="call", after=["pay"],
    request={"order": field("order")}, undo=None,
)  # fmt: skip
register(Workflow(name="bank", steps=[PAY, CAPTURE]))

SEND = Step(
    name="send", agent=settings.CALLERS[0], action="call",
    request={"order": field("order"), "warehouse": field("warehouse")}, undo=None,
)  # fmt: skip
PARCELS = Step(
    name="parcels", workflow="parcel", each=field("warehouses"),
    request={"order": field("order"), "warehouse": item()},
)  # fmt: skip
register(Workflow(name="parcel", steps=[SEND]))
register(Workflow(name="parcels", steps=[PARCELS, replace(CAPTURE, after=["parcels"])]))
