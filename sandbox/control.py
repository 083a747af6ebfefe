"""The paths that belong to no partner: ledger, stock, mailbox, faults, pages."""

from collections.abc import Callable
from itertools import islice

from aiohttp.web import BaseRequest, Response, StreamResponse

from sandbox.demo_switch import DemoSwitch
from sandbox.fault_script import FaultScript
from sandbox.ledger import Ledger
from sandbox.listing import list_entries
from sandbox.refusals import Refusal, bad_field
from sandbox.requests import methods_of, parse_json
from sandbox.responses import json_response
from sandbox.site.handlers import Handler, Site
from sandbox.site.layout import check_origin
from sandbox.site.mailbox import select
from sandbox.totals import list_totals

BANK = "/bank/"  # its pages end with the id of a payment intent
MAX_MESSAGES = 1_000  # in the answer to GET /mail/messages


class Control:
    """Handlers by method and path."""

    def __init__(
        self,
        ledger: Ledger,
        script: FaultScript,
        switch: DemoSwitch,
        site: Site,
        reset: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._script = script
        self._switch = switch
        self._reset = reset
        self._handlers: dict[tuple[str, str], Handler] = {
            **site.handlers,
            ("GET", "/healthz"): self._health,
            ("GET", "/ledger"): self._entries,
            ("DELETE", "/ledger"): self._clear_ledger,
            ("GET", "/ledger/summary"): self._summary,
            ("GET", "/inventory/stock"): self._stock,
            ("PUT", "/inventory/stock"): self._set_stock,
            ("GET", "/mail/messages"): self._messages,
            ("POST", "/demand"): self._poll_switch,
            ("GET", "/faults"): self._faults,
            ("PUT", "/faults"): self._replace_faults,
            ("POST", "/faults"): self._add_fault,
            ("DELETE", "/faults"): self._clear_faults,
        }

    async def handle(
        self, request: BaseRequest, path: str, query: dict[str, str]
    ) -> StreamResponse:
        """Answer a request that is not for a partner; raises Refusal, also for unknown paths."""
        if path.startswith(BANK):
            path = f"{BANK}*"
        handler = self._handlers.get((request.method, path))
        if handler is not None:
            self._ledger.commit()  # what a page shows is durable
            if request.method != "GET":
                check_origin(request)
            return await handler(request, query)
        known = {method for method, known_path in self._handlers if known_path == path}
        known |= set(methods_of(path))
        if known:
            raise Refusal(
                405,
                "method_not_allowed",
                f"{path} does not take {request.method}; it takes {', '.join(sorted(known))}.",
            )
        raise Refusal(404, "unknown_path", f"Unknown path {path}. GET / lists all paths.")

    async def _health(self, _: BaseRequest, __: dict[str, str]) -> Response:
        return json_response({"status": "ok", "entries": self._ledger.last_seq})

    async def _entries(self, request: BaseRequest, query: dict[str, str]) -> StreamResponse:
        return await list_entries(request, self._ledger, query)

    async def _summary(self, request: BaseRequest, query: dict[str, str]) -> StreamResponse:
        return await list_totals(request, self._ledger, query)

    async def _clear_ledger(self, _: BaseRequest, __: dict[str, str]) -> Response:
        self._reset()
        return json_response({"entries": [], "next": None})

    async def _stock(self, _: BaseRequest, __: dict[str, str]) -> Response:
        return json_response(self._ledger.inventory.levels())

    async def _set_stock(self, request: BaseRequest, _: dict[str, str]) -> Response:
        levels = parse_json(await request.read())
        if not isinstance(levels, dict):
            raise bad_field("sku", "Send an object of quantities by SKU, as in {'mug': 40}.")
        self._ledger.set_stock(levels)
        await self._ledger.committed()
        return json_response(self._ledger.inventory.levels())

    async def _messages(self, _: BaseRequest, query: dict[str, str]) -> Response:
        mail = self._ledger.mail
        newest = [
            mail.message(entry) for entry in islice(select(self._ledger, query), MAX_MESSAGES)
        ]
        return json_response({"messages": newest[::-1]})

    async def _poll_switch(self, request: BaseRequest, _: dict[str, str]) -> Response:
        return json_response({"rate": self._switch.poll(parse_json(await request.read()))})

    async def _faults(self, _: BaseRequest, __: dict[str, str]) -> Response:
        return json_response(self._script.show())

    async def _replace_faults(self, request: BaseRequest, _: dict[str, str]) -> Response:
        self._script.replace(parse_json(await request.read()))
        return json_response(self._script.show())

    async def _add_fault(self, request: BaseRequest, _: dict[str, str]) -> Response:
        return json_response(self._script.add(parse_json(await request.read())).show(), 201)

    async def _clear_faults(self, _: BaseRequest, __: dict[str, str]) -> Response:
        self._script.clear()
        return json_response(self._script.show())
