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


def _step(name: str, agent: str, after: list[str]) -> Step:
    return Step(
        name=name,
        agent=agent,
        action="call",
        after=after,
        request={"order": field("order")},
        undo=None,  # nothing is undone in a benchmark
    )


# A workflow for each agent, which goes on to the two agents after it.
for number, agent in enumerate(settings.CALLERS):
    second, third = (settings.CALLERS[(number + n) % len(settings.CALLERS)] for n in (1, 2))
    register(type(agent, (Caller,), {"name": agent}))
    register(
        Workflow(
            name=f"three_calls_{number}" if number else "three_calls",
            steps=[
                _step("first", agent, []),
                _step("second", second, ["first"]),
                _step("third", third, ["second"]),
            ],
        )
    )
