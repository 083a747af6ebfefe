"""The partners' front door: each request through faults, latency, ledger, and back."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote

from aiohttp.web import BaseRequest, HTTPException, Response, StreamResponse

from sandbox.cards import CARD, SpoiledCards
from sandbox.control import Control
from sandbox.demand import Demand
from sandbox.faults import Fault
from sandbox.intake import Route, authorize, find_route, read_call, split_target
from sandbox.journal import Journal
from sandbox.ledger import AGAIN, ENTRY, Ledger
from sandbox.partner import PARTNERS, Call, Entry, Json
from sandbox.payment import missing
from sandbox.refusals import PAYMENT, Refusal, bad_field, key_in_use
from sandbox.script import Script
from sandbox.site.handlers import Site
from sandbox.traffic import Traffic
from sandbox.wire import after_effect, before_effect, cut, refuse, reply, scripted_refusal

log = logging.getLogger("sandbox")
LONGEST = 3600.0  # seconds that ?latency= may ask for


class Sandbox:
    """All partners on one journal. `handle` is a handler for aiohttp's low-level server."""

    def __init__(
        self, journal: Journal, pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        """Restore what the journal holds; raises JournalError. `pause` lets a partner's time pass."""
        self._pause = pause
        self.ledger = Ledger(journal.append)
        self.script = Script(journal.append)
        self.cards = SpoiledCards(journal.append)
        self.traffic = {partner: Traffic() for partner in PARTNERS}
        self.demand = Demand()
        self.late: set[asyncio.Task[None]] = set()
        self._journal = journal
        self._in_progress: set[str] = set()
        for number, row in enumerate(journal.rows(), 2):  # after the header
            try:
                self._owner(row[0]).restore(row)
            except (TypeError, ValueError, LookupError, Refusal) as error:
                raise journal.unreadable(number) from error
        self._control = Control(
            self.ledger,
            self.script,
            self.demand,
            Site(self.ledger, self.script, self.traffic, self.demand),
            self.reset,
        )

    def _owner(self, tag: str) -> Ledger | SpoiledCards | Script:
        if tag in (ENTRY, AGAIN):
            return self.ledger
        return self.cards if tag == CARD else self.script

    def reset(self) -> None:
        """Forget everything, in memory and in the journal."""
        for task in self.late:
            task.cancel()
        self._journal.clear()
        self.ledger.reset()
        self.script.reset()
        self.cards.reset()

    async def close(self) -> None:
        """Drop late effects still to come, and let go of the journal."""
        late = list(self.late)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        self._journal.close()

    async def handle(self, request: BaseRequest) -> StreamResponse:
        """Answer one request; every error is JSON with a message."""
        path, query = split_target(request.raw_path)
        route = find_route(request.method, path)
        partner = route.partner if route else None
        try:
            if route is None:
                return await self._other(request, path, query)
            if route.action == "read":
                return await self._read(request, route)
            return await self._act(request, route, query)
        except Refusal as refusal:
            return refuse(refusal, partner)
        except HTTPException as error:
            message = f"{error.reason}: {error.text}"
            return refuse(Refusal(error.status, "bad_request", message), partner)
        except OSError as error:
            log.exception("The request %s %s failed", request.method, path)
            message = f"The ledger could not be written: {error}. Make room, then repeat."
            return refuse(Refusal(500, "ledger_failed", message), partner)

    async def _other(
        self, request: BaseRequest, path: str, query: dict[str, str]
    ) -> StreamResponse:
        if path.startswith("/keys/") and request.method == "GET":
            return await self._ask(request, unquote(path[6:]), query)
        return await self._control.handle(request, path, query)

    async def _act(
        self, request: BaseRequest, route: Route, query: dict[str, str]
    ) -> StreamResponse:
        call = await read_call(request, route, self.ledger)
        seconds, fault = self.script.pick(call.partner, call.action, call.key, call.order)
        fault = fault or self.cards.pick(call)
        self.traffic[call.partner].count(requests=1, hit=fault is not None or seconds > 0)
        if fault is None or fault.kind != "down":
            self.ledger.requested(call.key)
        if fault is not None:
            if fault.kind == "late_effect":
                self._do_later(call, fault.params["seconds"])
                return cut(request)
            spoiled = await before_effect(request, fault, call.partner)
            if spoiled is not None:
                return spoiled
        seconds += self._base_latency(route, query)
        answer = await self._perform(call, seconds, fault)
        if fault is None:
            return answer
        return await after_effect(request, fault, call.partner, answer)

    async def _perform(self, call: Call, seconds: float, fault: Fault | None) -> Response:
        """Take the processing time, then do the call and return its answer."""
        if call.key in self._in_progress:
            return refuse(key_in_use(call.partner, call.key), call.partner)
        forced = None
        if fault is not None and fault.kind == "reject":
            forced = scripted_refusal(fault, call.partner)
        if call.key not in self.ledger.keys:
            self._in_progress.add(call.key)
        try:
            if seconds:
                await self._pause(seconds)
            status, body, replayed = self.ledger.perform(call, forced)
            if not replayed and status < 400:
                self.traffic[call.partner].count(effects=1)
        except Refusal as refusal:
            return refuse(refusal, call.partner)
        finally:
            self._in_progress.discard(call.key)
        return reply(body, status, replayed=replayed)

    def _do_later(self, call: Call, seconds: float) -> None:
        task = asyncio.get_running_loop().create_task(self._perform_late(call, seconds))
        self.late.add(task)
        task.add_done_callback(self.late.discard)

    async def _perform_late(self, call: Call, seconds: float) -> None:
        await self._pause(seconds)
        await self._perform(call, 0, None)

    async def _read(self, request: BaseRequest, route: Route) -> StreamResponse:
        authorize(request, route.partner)
        ref = route.ref or ""
        order = self.ledger.order_of(route.partner, ref, None)

        def answer() -> Json:
            found = self.ledger.partners[route.partner].view(ref)
            if found is not None:
                return found
            if route.partner == PAYMENT:
                raise missing(ref)
            raise Refusal(404, "unknown_id", f"The {route.partner} partner has no '{ref}'.")

        return await self._look_up(request, route.partner, "", order, answer)

    async def _ask(self, request: BaseRequest, key: str, query: dict[str, str]) -> StreamResponse:
        """Tell what a key made; `?partner=` says whom is asked where the key is unknown."""
        known = self.ledger.keys.get(key)
        partner = known.partner if known else query.get("partner", "")
        order = known.order if known else None
        return await self._look_up(request, partner, key, order, lambda: self._made(key))

    def _made(self, key: str) -> Json:
        entry: Entry | None = self.ledger.keys.get(key)
        undone = key in self.ledger.undone
        if entry is None and key in self._in_progress:
            raise key_in_use("", key)
        if entry is None:
            message = f"No request with the key '{key}' has had an effect."
            raise Refusal(404, "unknown_key", message, undone=undone)
        return {
            "key": key,
            "partner": entry.partner,
            "action": entry.action,
            "status": "rejected" if entry.rejected else "done",
            "http_status": entry.http,
            "response": self.ledger.body(entry),
            "undone": undone,
            "requests": entry.requests,
        }

    async def _look_up(
        self, request: BaseRequest, partner: str, key: str, order: str | None, answer: Any
    ) -> StreamResponse:
        """Answer a read, with the faults of the action "read" and the partner's latency."""
        seconds, fault = self.script.pick(partner, "read", key, order)
        if fault is not None:
            if fault.kind == "late_effect":
                return cut(request)
            if fault.kind == "reject":
                return refuse(scripted_refusal(fault, partner), partner)
            spoiled = await before_effect(request, fault, partner)
            if spoiled is not None:
                return spoiled
        seconds += self.script.latency.get(partner, 0.0)
        if seconds:
            await self._pause(seconds)
        try:
            response = reply(answer())
        except Refusal as refusal:
            response = refuse(refusal, partner)
        return response if fault is None else await after_effect(request, fault, partner, response)

    def _base_latency(self, route: Route, query: dict[str, str]) -> float:
        wanted = query.get("latency") if route.partner == "bench" else None
        if wanted is None:
            return self.script.latency[route.partner]
        try:
            seconds = float(wanted)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds <= LONGEST:
            raise bad_field("latency", f"'latency' must be seconds, 0 to 3600, not {wanted!r}.")
        return seconds
