from typing import Any

from django.conf import settings

from orchestration.api import Call, HttpAgent, Step, Workflow, action, field, register


class Caller(HttpAgent):
    name = "caller"
    base_url = settings.SANDBOX_URL
    slots = 300
    policy = {"window": 600, "time_allowed": 30.0, "call_timeout": 10.0}

    @action
    async def call(self, call: Call) -> dict[str, Any]:
        return await self.post(call, "/bench/calls", body=call.payload, expect={"id": str})


def _step(name: str, after: list[str]) -> Step:
    return Step(
        name=name,
        agent="caller",
        action="call",
        after=after,
        request={"order": field("order")},
        undo=None,  # nothing is undone in a benchmark
    )


register(Caller)
register(
    Workflow(
        name="three_calls",
        steps=[_step("first", []), _step("second", ["first"]), _step("third", ["second"])],
    )
)
