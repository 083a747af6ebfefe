"""The remote service: `python -m bench.lanes.service PORT`.

`POST /runs/<run>/calls` is a call. `PUT /runs/<run>` sets the run's rules, and `GET` returns the number
of calls, and the peak of concurrent ones, since the rules were set.
"""

import asyncio
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from aiohttp import web

from bench.lanes.fates import Fate, Rules, fate

LONGEST = 60.0  # seconds of silence; the caller times out before


@dataclass
class RunState:
    """The rules of a run, its calls by task, and the counts since the rules were set."""

    rules: Rules = field(default_factory=Rules)
    nth: Counter[int] = field(default_factory=Counter)
    calls: int = 0
    open: int = 0
    peak: int = 0


class Service:
    """Answers calls by their fates, and counts concurrent ones."""

    def __init__(self) -> None:
        self.runs: defaultdict[str, RunState] = defaultdict(RunState)

    async def rule(self, request: web.Request) -> web.Response:
        """Set a run's rules and reset its counts."""
        run = self.runs[request.match_info["run"]]
        run.rules, run.calls, run.peak = Rules(**await request.json()), 0, run.open
        return web.json_response({})

    async def counts(self, request: web.Request) -> web.Response:
        """Return a run's counts."""
        run = self.runs[request.match_info["run"]]
        return web.json_response({"calls": run.calls, "peak": run.peak})

    async def call(self, request: web.Request) -> web.Response:
        """Answer a call; it is no longer open once its caller has timed out."""
        run = self.runs[request.match_info["run"]]
        body = await request.json()
        run.calls += 1
        run.open += 1
        run.peak = max(run.peak, run.open)
        try:
            return await self._answer(request, run, body)
        finally:
            run.open -= 1

    async def _answer(self, request: web.Request, run: RunState, body: dict) -> web.Response:
        number = body["number"]
        run.nth[number] += 1
        what, seconds = fate(run.rules, number, run.nth[number])
        if body["poison"] == "forbidden":
            what = Fate.FORBIDDEN
        if what == Fate.CUT:
            request.transport.abort()
            return web.Response()
        if what == Fate.BUSY:
            return web.json_response({"error": {}}, status=503, headers={"Retry-After": "1"})
        await asyncio.sleep(LONGEST if what == Fate.SILENCE else seconds)
        if what == Fate.FORBIDDEN:
            return web.json_response({"error": {"message": "You may not do this."}}, status=403)
        if what == Fate.ERROR:
            return web.json_response({"error": {"message": "Something went wrong."}}, status=500)
        return web.json_response({"id": request.headers["Idempotency-Key"]}, status=201)


def main() -> None:
    """Serve until a signal ends it."""
    service = Service()
    app = web.Application()
    app.add_routes(
        [
            web.put("/runs/{run}", service.rule),
            web.get("/runs/{run}", service.counts),
            web.post("/runs/{run}/calls", service.call),
        ]
    )
    web.run_app(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        access_log=None,
        print=None,
        backlog=1024,
        handler_cancellation=True,
    )


if __name__ == "__main__":
    main()
