"""The HTTP server: passes each request through faults, latency and the ledger."""

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote

from aiohttp.web import BaseRequest, HTTPException, Response, StreamResponse

from sandbox.background import Background
from sandbox.bank import Bank
from sandbox.cards import CardFaults
from sandbox.control import Control
from sandbox.database import Database
from sandbox.demo_switch import DemoSwitch
from sandbox.fault_script import FaultScript
from sandbox.faults import Fault
from sandbox.ledger import Ledger
from sandbox.listing import number
from sandbox.partner import PARTNERS, Call, Json
from sandbox.payment import missing
from sandbox.refusals import PAYMENT, Refusal, bad_field, key_in_use
from sandbox.requests import Route, authorize, find_route, read_call, split_target
from sandbox.responses import (
    apply_after_effect,
    apply_before_effect,
    cut_connection,
    error_response,
    json_response,
    scripted_refusal,
)
from sandbox.site.handlers import Site
from sandbox.stock import LONGEST_PAGE, page
from sandbox.traffic import Traffic
from sandbox.webhooks import Webhooks

log = logging.getLogger("sandbox")
LEVELS = "/inventory/levels"
MAX_LATENCY = 3600.0  # seconds in ?latency=


class Sandbox:
    """All partners on one ledger. `handle` is a handler for aiohttp's low-level server."""

    def __init__(
        self,
        database: Database,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        site: str = "",
    ) -> None:
        """Load what the database holds. `pause` waits for a partner's processing time.

        `site` is the address of the pages, without a slash at its end.
        """
        self._pause = pause
        self._database = database
        self.ledger = Ledger(database, site)
        self.script = FaultScript(database)
        self.cards = CardFaults(database)
        self.traffic = {partner: Traffic() for partner in PARTNERS}
        self.background = Background()
        self._in_progress: set[str] = set()
        self.webhooks = Webhooks(database, self.script, self.background, pause)
        self.bank = Bank(self.ledger, self.webhooks, self.background, pause)
        switch = DemoSwitch()
        pages = Site(self.ledger, self.script, self.traffic, switch, self.bank)
        self._control = Control(self.ledger, self.script, switch, pages, self.reset)

    def reset(self) -> None:
        """Delete everything, in memory and in the database."""
        self.background.cancel()
        self.ledger.commit()
        self._database.clear()
        self.ledger.load()
        self.script.reset()

    def resume(self) -> None:
        """Go on with what customers and webhooks of the former run had begun."""
        self.webhooks.resume()
        self.bank.resume()

    async def close(self) -> None:
        """Cancel what goes on beside the requests, and close the database."""
        await self.background.close()
        self._database.close()

    async def handle(self, request: BaseRequest) -> StreamResponse:
        """Answer one request; every error is JSON with a message."""
        path, query = split_target(request.raw_path)
        route = find_route(request.method, path)
        partner = route.partner if route else None
        try:
            if route is None:
                return await self._handle_other(request, path, query)
            if route.action == "read":
                return await self._read_object(request, route)
            return await self._handle_call(request, route, query)
        except Refusal as refusal:
            return error_response(refusal, partner)
        except HTTPException as error:
            message = f"{error.reason}: {error.text}"
            return error_response(Refusal(error.status, "bad_request", message), partner)
        except (OSError, sqlite3.Error) as error:
            log.exception("The request %s %s failed", request.method, path)
            message = f"The ledger could not be written: {error}. Free disk space, then repeat."
            return error_response(Refusal(500, "ledger_failed", message), partner)

    async def _handle_other(
        self, request: BaseRequest, path: str, query: dict[str, str]
    ) -> StreamResponse:
        if path.startswith("/keys/") and request.method == "GET":
            return await self._read_key(request, unquote(path[6:]), query)
        if path == LEVELS and request.method == "GET":
            limit = number(query, "limit", LONGEST_PAGE, 1)
            return await self._answer_read(
                request, "inventory", "", None,
                lambda: page(self.ledger.inventory.stock, query, limit),
            )  # fmt: skip
        return await self._control.handle(request, path, query)

    async def _handle_call(
        self, request: BaseRequest, route: Route, query: dict[str, str]
    ) -> StreamResponse:
        call = await read_call(request, route, self.ledger)
        seconds, fault = self.script.pick(call.partner, call.action, call.key, call.order)
        fault = fault or self.cards.pick(call)
        bar = self.traffic[call.partner].current()
        bar.requests += 1
        bar.hit += fault is not None or seconds > 0
        if fault is None or fault.kind != "down":
            self.ledger.count_request(call.key)
        if fault is not None:
            if fault.kind == "late_effect":
                self.background.start(self._perform_late(call, fault.params["seconds"]))
                return cut_connection(request)
            faulty = await apply_before_effect(request, fault, call.partner)
            if faulty is not None:
                return faulty
        seconds += self._base_latency(route, query)
        answer = await self._perform(call, seconds, fault)
        if fault is None:
            return answer
        return await apply_after_effect(request, fault, call.partner, answer)

    async def _perform(
        self, call: Call, seconds: float = 0, fault: Fault | None = None
    ) -> Response:
        """Wait for the processing time, then do the call and return its answer."""
        if call.key in self._in_progress:
            return error_response(key_in_use(call.partner, call.key), call.partner)
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
                self.traffic[call.partner].current().effects += 1
                self.bank.notice(call, str(body.get("id")))
            response = json_response(body, status, replayed=replayed)
        except Refusal as refusal:
            response = error_response(refusal, call.partner)
        finally:
            self._in_progress.discard(call.key)
        await self.ledger.committed()
        return response

    async def _perform_late(self, call: Call, seconds: float) -> None:
        await self._pause(seconds)
        await self._perform(call)

    async def _read_object(self, request: BaseRequest, route: Route) -> StreamResponse:
        authorize(request, route.partner)
        ref = route.ref or ""
        order = self.ledger.order_of(route.partner, ref, None)

        def answer() -> Json:
            view = self.ledger.partners[route.partner].view(ref)
            if view is not None:
                return view
            if route.partner == PAYMENT:
                raise missing(ref)
            raise Refusal(404, "unknown_id", f"The {route.partner} partner has no object '{ref}'.")

        return await self._answer_read(request, route.partner, "", order, answer)

    async def _read_key(
        self, request: BaseRequest, key: str, query: dict[str, str]
    ) -> StreamResponse:
        """Answer what a key did; `?partner=` names the partner of an unknown key."""
        known = self.ledger.find(key)
        partner = known.partner if known else query.get("partner", "")
        order = known.order if known else None
        return await self._answer_read(request, partner, key, order, lambda: self._outcome_of(key))

    def _outcome_of(self, key: str) -> Json:
        entry = self.ledger.find(key)
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

    async def _answer_read(
        self, request: BaseRequest, partner: str, key: str, order: str | None, answer: Any
    ) -> StreamResponse:
        """Answer a read, subject to faults of the action "read" and the partner's latency."""
        seconds, fault = self.script.pick(partner, "read", key, order)
        if fault is not None:
            if fault.kind == "late_effect":
                return cut_connection(request)
            if fault.kind == "reject":
                return error_response(scripted_refusal(fault, partner), partner)
            faulty = await apply_before_effect(request, fault, partner)
            if faulty is not None:
                return faulty
        seconds += self.script.latency.get(partner, 0.0)
        if seconds:
            await self._pause(seconds)
        self.ledger.commit()  # what an answer shows is durable
        try:
            response = json_response(answer())
        except Refusal as refusal:
            response = error_response(refusal, partner)
        return (
            response
            if fault is None
            else await apply_after_effect(request, fault, partner, response)
        )

    def _base_latency(self, route: Route, query: dict[str, str]) -> float:
        latency = query.get("latency") if route.partner == "bench" else None
        if latency is None:
            return self.script.latency[route.partner]
        try:
            seconds = float(latency)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds <= MAX_LATENCY:
            raise bad_field("latency", f"'latency' must be seconds, 0 to 3600, not {latency!r}.")
        return seconds
