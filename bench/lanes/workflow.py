"""An agent and a workflow of one step for each lane; a task's fault is in its data."""

import os
import time
from typing import Any

from django.conf import settings

from orchestration.api import Call, HttpAgent, Step, Workflow, action, field, register


class Lane(HttpAgent):
    base_url = settings.SERVICE_URL
    isolated = settings.ISOLATED

    @action
    async def call(self, call: Call) -> dict[str, Any]:
        match call.payload["poison"]:
            case "raises":
                raise ValueError("the agent cannot handle this payload")
            case "kills":
                os._exit(1)
            case "blocks":
                time.sleep(call.payload["seconds"])  # noqa: ASYNC251 - the whole event loop waits
        path = f"/runs/{call.payload['run']}/calls"
        return await self.post(call, path, body=call.payload, expect={"id": str})


for name, policy in settings.LANES.items():
    register(type(name, (Lane,), {"name": name, "policy": policy}))
    register(
        Workflow(
            name=name,
            steps=[
                Step(
                    name="call",
                    agent=name,
                    action="call",
                    request={key: field(key) for key in ("run", "number", "poison", "seconds")},
                    undo=None,  # a benchmark undoes nothing
                )
            ],
        )
    )
