from typing import Any
from urllib.parse import quote

from django.conf import settings

from orchestration.api import Call, HttpAgent, Later, Step, Workflow, action, field, register

AN_HOUR = 3600.0


class Caller(HttpAgent):
    name = "caller"
    base_url = settings.SANDBOX_URL
    slots = 600
    policy = {"window": 1200, "time_allowed": 30.0, "call_timeout": 10.0}

    @action
    async def call(self, call: Call) -> dict[str, Any]:
        return await self.post(call, "/bench/calls", body=call.payload, expect={"id": str})

    @action
    async def accept(self, call: Call) -> None:
        """Have the call accepted, as a payment is that its customer has yet to confirm."""
        raise Later(accepted=await self.call(call), look=AN_HOUR)

    async def ask(self, call: Call) -> None:
        """Ask the service, which has no result yet."""
        await self.get(call, f"/keys/{quote(call.key, safe='')}?partner=bench", expect={})
        raise Later


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

PAY = Step(
    name="pay",
    agent=settings.CALLERS[0],
    action="accept",
    request={"order": field("order")},
    undo=None,
)
register(Workflow(name="confirmed", steps=[PAY]))

if settings.FLOWS:  # what one declares costs each turn: also the plain tasks of other benchmarks
    import bench.engine.flows  # noqa: F401
