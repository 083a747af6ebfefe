"""The side of the sandbox that partners do not have: ledger, stock, mailbox, faults, pages."""

from collections.abc import Callable
from itertools import islice

from aiohttp.web import BaseRequest, Response, StreamResponse

from sandbox.demand import Demand
from sandbox.intake import methods_of, parse_json
from sandbox.journal import encode
from sandbox.ledger import Ledger
from sandbox.listing import list_entries
from sandbox.refusals import Refusal, bad_field
from sandbox.script import Script
from sandbox.site.frame import check_origin
from sandbox.site.handlers import Handler, Site
from sandbox.site.mailbox import select
from sandbox.totals import totals
from sandbox.wire import JSON_HEADERS, reply

USUAL = 1_000  # messages in the mailbox's answer
CHUNK = 500  # orders of the summary in one write


class Control:
    """Handlers by method and path."""

    def __init__(
        self,
        ledger: Ledger,
        script: Script,
        demand: Demand,
        site: Site,
        reset: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._script = script
        self._demand = demand
        self._reset = reset
        self._handlers: dict[tuple[str, str], Handler] = {
            **site.handlers,
            ("GET", "/healthz"): self._health,
            ("GET", "/ledger"): self._entries,
            ("DELETE", "/ledger"): self._forget,
            ("GET", "/ledger/summary"): self._summary,
            ("GET", "/inventory/stock"): self._stock,
            ("PUT", "/inventory/stock"): self._set_stock,
            ("GET", "/mail/messages"): self._messages,
            ("POST", "/demand"): self._demanded,
            ("GET", "/faults"): self._faults,
            ("PUT", "/faults"): self._replace_faults,
            ("POST", "/faults"): self._add_fault,
            ("DELETE", "/faults"): self._clear_faults,
        }

    async def handle(
        self, request: BaseRequest, path: str, query: dict[str, str]
    ) -> StreamResponse:
        """Answer a request that is not for a partner; raises Refusal, also for unknown paths."""
        handler = self._handlers.get((request.method, path))
        if handler is not None:
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
        raise Refusal(
            404, "unknown_path", f"There is nothing at {path}. GET / lists what there is."
        )

    async def _health(self, _: BaseRequest, __: dict[str, str]) -> Response:
        return reply({"status": "ok", "entries": len(self._ledger.entries)})

    async def _entries(self, request: BaseRequest, query: dict[str, str]) -> StreamResponse:
        return await list_entries(request, self._ledger, query)

    async def _summary(self, request: BaseRequest, query: dict[str, str]) -> StreamResponse:
        by_order = self._ledger.by_order
        orders = [query["order"]] if "order" in query else list(by_order)
        response = StreamResponse(headers=JSON_HEADERS)
        await response.prepare(request)
        await response.write(b"{")
        for start in range(0, len(orders), CHUNK):
            pairs = (
                f"{encode(order)}:{encode(totals(by_order.get(order, [])))}"
                for order in orders[start : start + CHUNK]
            )
            await response.write((("," if start else "") + ",\n".join(pairs)).encode())
        await response.write(b"}\n")
        return response

    async def _forget(self, _: BaseRequest, __: dict[str, str]) -> Response:
        self._reset()
        return reply({"entries": [], "next": None})

    async def _stock(self, _: BaseRequest, __: dict[str, str]) -> Response:
        return reply(self._ledger.inventory.levels())

    async def _set_stock(self, request: BaseRequest, _: dict[str, str]) -> Response:
        wanted = parse_json(await request.read())
        if not isinstance(wanted, dict):
            raise bad_field("sku", "Send an object of quantities by SKU, as in {'mug': 40}.")
        self._ledger.set_stock(wanted)
        return reply(self._ledger.inventory.levels())

    async def _messages(self, _: BaseRequest, query: dict[str, str]) -> Response:
        mail = self._ledger.mail
        newest = [mail.message(entry) for entry in islice(select(self._ledger, query), USUAL)]
        return reply({"messages": newest[::-1]})

    async def _demanded(self, request: BaseRequest, _: dict[str, str]) -> Response:
        return reply({"rate": self._demand.ask(parse_json(await request.read()))})

    async def _faults(self, _: BaseRequest, __: dict[str, str]) -> Response:
        return reply(self._script.show())

    async def _replace_faults(self, request: BaseRequest, _: dict[str, str]) -> Response:
        self._script.replace(parse_json(await request.read()))
        return reply(self._script.show())

    async def _add_fault(self, request: BaseRequest, _: dict[str, str]) -> Response:
        return reply(self._script.add(parse_json(await request.read())).show(), 201)

    async def _clear_faults(self, _: BaseRequest, __: dict[str, str]) -> Response:
        self._script.clear()
        return reply(self._script.show())
