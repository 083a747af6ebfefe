"""The addresses of the pages, and of their forms."""

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qsl

from aiohttp.web import BaseRequest, Response, StreamResponse

from sandbox.demand import RATES, Demand
from sandbox.ledger import Ledger
from sandbox.refusals import bad_field
from sandbox.script import Script
from sandbox.site.frame import FILES, back_to, file
from sandbox.site.home import SHOWN, home
from sandbox.site.mailbox import mailbox, message
from sandbox.site.trouble import LIMITS, TROUBLES
from sandbox.traffic import Traffic

Handler = Callable[[BaseRequest, dict[str, str]], Awaitable[StreamResponse]]


class Site:
    """Handlers by method and path."""

    def __init__(
        self, ledger: Ledger, script: Script, traffic: Mapping[str, Traffic], demand: Demand
    ) -> None:
        self._ledger = ledger
        self._script = script
        self._traffic = traffic
        self._demand = demand
        self.handlers: dict[tuple[str, str], Handler] = {
            ("GET", "/"): self._home,
            ("GET", "/mail/"): self._mailbox,
            ("GET", "/mail/html"): self._message,
            ("POST", "/demand/switch"): self._switch,
            ("POST", "/faults/break"): self._break,
            ("POST", "/faults/heal"): self._heal,
            ("POST", "/faults/remove"): self._remove,
            **{("GET", path): self._file for path in FILES},
        }

    async def _home(self, request: BaseRequest, _: dict[str, str]) -> Response:
        host = request.headers.get("Host", "")
        return home(self._ledger, self._script, self._traffic, self._demand, host)

    async def _mailbox(self, _: BaseRequest, query: dict[str, str]) -> Response:
        return mailbox(self._ledger, query)

    async def _message(self, _: BaseRequest, query: dict[str, str]) -> Response:
        return message(self._ledger.mail, query)

    async def _file(self, request: BaseRequest, _: dict[str, str]) -> Response:
        return file(request.path)

    async def _switch(self, request: BaseRequest, _: dict[str, str]) -> Response:
        """Have customers come at a rate, or no more."""
        self._demand.wanted = _one_of(await _form(request), "rate", RATES)
        return back_to("/#customers")

    async def _break(self, request: BaseRequest, _: dict[str, str]) -> Response:
        """Have a trouble befall a partner; `times` empty: until healed."""
        form = await _form(request)
        partner = _one_of(form, "partner", SHOWN)
        trouble = TROUBLES[_one_of(form, "trouble", TROUBLES)]
        times = _one_of(form, "times", LIMITS)
        limit = int(times) if times else None
        self._script.put(partner, {**trouble.fault, "partner": partner, "times": limit})
        return back_to(f"/#{partner}")

    async def _heal(self, request: BaseRequest, _: dict[str, str]) -> Response:
        """Heal one partner, or all if none is named."""
        form = await _form(request)
        if "partner" not in form:
            self._script.clear()
            return back_to("/")
        partner = _one_of(form, "partner", SHOWN)
        self._script.heal(partner)
        return back_to(f"/#{partner}")

    async def _remove(self, request: BaseRequest, _: dict[str, str]) -> Response:
        """Take one fault away; that it is gone already is no error."""
        ref = (await _form(request)).get("id", "")
        if not (ref.isascii() and ref.isdigit() and len(ref) < 16):
            raise bad_field("id", f"'id' must be the number of a fault, not {ref!r}.")
        self._script.remove(int(ref))
        return back_to("/#faults")


async def _form(request: BaseRequest) -> dict[str, str]:
    body = await request.read()
    return dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))


def _one_of(form: Mapping[str, str], field: str, known: Mapping[str, object]) -> str:
    value = form.get(field, "")
    if value not in known:
        choices = ", ".join(repr(name) for name in known)
        raise bad_field(field, f"'{field}' must be one of {choices}, not {value!r}.")
    return value
