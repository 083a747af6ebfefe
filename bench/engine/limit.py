"""The physical limit: the three calls of each task by the agents' HTTP client, and nothing else.

`python -m bench.engine.limit`: no durability, no queue, no state, and no second try.
"""

import django

django.setup()

import uvloop  # noqa: E402 - the agents need django.setup()

from bench.direct import Direct, serve  # noqa: E402
from bench.engine.workflow import Caller  # noqa: E402
from orchestration.api import Call  # noqa: E402

TIMEOUT = 10.0  # seconds


async def main() -> None:
    """Execute commands from standard input until it ends."""
    caller = Caller()

    async def run_task(reference: str) -> None:
        for name in ("first", "second", "third"):
            call = Call(
                action="call",
                key=f"{reference}:{name}",
                reference=reference,
                payload={"order": reference},
                timeout=TIMEOUT,
            )
            await caller.call(call)

    await serve(Direct(run_task, caller.slots))


if __name__ == "__main__":
    uvloop.run(main())
