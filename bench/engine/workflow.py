from typing import Any

from django.conf import settings

from orchestration.api import Call, HttpAgent, Step, Workflow, action, field, register


class Caller(HttpAgent):
    name = "caller"
    base_url = settings.SANDBOX_URL
    slots = 600
    policy = {"window": 1200, "time_allowed": 30.0, "call_timeout": 10.0}

    @action
    async def call(self, call: Call) -> dict[str, Any]:
        return await self.post(call, "/bench/calls", body=call.payload, expect={"id": str})


def _step(number: int, agent: str) -> Step:
    return Step(
        name=f"call_{number}",
        agent=agent,
        action="call",
        after=[f"call_{number - 1}"] if number > 1 else [],
        request={"order": field("order")},
        undo=None,  # nothing is undone in a benchmark
    )


# A workflow for each agent, which goes on to the agents after it.
for number, agent in enumerate(settings.CALLERS):
    register(type(agent, (Caller,), {"name": agent}))
    register(
        Workflow(
            name=f"three_calls_{number}" if number else "three_calls",
            steps=[
                _step(n, settings.CALLERS[(number + n - 1) % len(settings.CALLERS)])
                for n in range(1, settings.STEPS + 1)
            ],
        )
    )
