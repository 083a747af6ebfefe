"""What goes on beside the requests: effects that come later, acts of customers, webhooks."""

import asyncio
from collections.abc import Coroutine


class Background:
    """Coroutines that run by themselves until they end, or are cancelled together."""

    def __init__(self) -> None:
        self.running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[object, object, None]) -> None:
        """Have a coroutine run; an exception of it is logged by the event loop."""
        task = asyncio.get_running_loop().create_task(work)
        self.running.add(task)
        task.add_done_callback(self.running.discard)

    def cancel(self) -> None:
        """Cancel all."""
        for task in self.running:
            task.cancel()

    async def close(self) -> None:
        """Cancel all, and wait until they have ended."""
        self.cancel()
        await asyncio.gather(*self.running, return_exceptions=True)
