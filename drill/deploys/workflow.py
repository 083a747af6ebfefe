"""The shop's workflow with a step added, one removed, or two in another order."""

import os
from dataclasses import replace

from orchestration.api import Step, field, register, result
from orchestration.registry import workflows
from orders.message import WORKFLOW

old = workflows[WORKFLOW]
steps = {step.name: step for step in old.steps}

if os.environ.get("DRILL_DEPLOY") == "added":
    steps["thank"] = Step(
        name="thank",
        agent="notification",
        action="send",
        after=["send_confirmation"],
        request={
            "order": field("order"),
            "to": field("email"),
            "mail": field("confirmation"),
            "parcel": result("create_shipment", "tracking"),
        },
        irreversible="it is in the customer's inbox",
    )
elif os.environ.get("DRILL_DEPLOY") == "removed":
    del steps["send_confirmation"]
elif os.environ.get("DRILL_DEPLOY") == "reordered":
    steps["capture_payment"] = replace(steps["capture_payment"], after=["authorize_payment"])
    steps["create_shipment"] = replace(
        steps["create_shipment"], after=["reserve_stock", "capture_payment"]
    )
    steps["send_confirmation"] = replace(steps["send_confirmation"], after=["create_shipment"])

register(replace(old, steps=list(steps.values())))
