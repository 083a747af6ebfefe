"""The paths of the pages and of their forms."""

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qsl

from aiohttp.web import BaseRequest, Response, StreamResponse

from sandbox.bank import Bank
from sandbox.demo_switch import RATES, DemoSwitch
from sandbox.fault_script import FaultScript
from sandbox.intents import ASKS
from sandbox.ledger import Ledger
from sandbox.refusals import bad_field
from sandbox.site.bank import ACTS, back_to_shop, bank_page
from sandbox.site.faults import LIMITS, PRESETS
from sandbox.site.home import SHOWN, home
from sandbox.site.layout import FILES, back_to, file
from sandbox.site.mailbox import mailbox, message
from sandbox.traffic import Traffic

Handler = Callable[[BaseRequest, dict[str, str]], Awaitable[StreamResponse]]


class Site:
    """Handlers by method and path."""

    def __init__(
        self,
        ledger: Ledger,
        script: FaultScript,
        traffic: Mapping[str, Traffic],
        switch: DemoSwitch,
        bank: Bank,
    ) -> None:
        self._ledger = ledger
        self._script = script
        self._traffic = traffic
        self._switch = switch
        self._bank = bank
        self.handlers: dict[tuple[str, str], Handler] = {
            ("GET", "/"): self._home,
            ("GET", "/mail/"): self._mailbox,
            ("GET", "/mail/html"): self._message,
            ("GET", "/bank/*"): self._bank_page,
            ("POST", "/bank/*"): self._bank_act,
            ("POST", "/demand/switch"): self._set_rate,
            ("POST", "/faults/break"): self._break,
            ("POST", "/faults/heal"): self._heal,
            ("POST", "/faults/remove"): self._remove,
            **{("GET", path): self._file for path in FILES},
        }

    async def _home(self, request: BaseRequest, _: dict[str, str]) -> Response:
        host = request.headers.get("Host", "")
        return home(self._ledger, self._script, self._traffic, self._switch, host)

    async def _mailbox(self, _: BaseRequest, query: dict[str, str]) -> Response:
        return mailbox(self._ledger, query)

    async def _message(self, _: BaseRequest, query: dict[str, str]) -> Response:
        return message(self._ledger, query)

    async def _bank_page(self, request: BaseRequest, _: dict[str, str]) -> Response:
        return bank_page(self._bank.intent(_last_part(request)))

    async def _bank_act(self, request: BaseRequest, _: dict[str, str]) -> Response:
        """Have the customer confirm or refuse a payment, and lead back to the shop."""
        ref = _last_part(request)
        intent = self._bank.intent(ref)
        action = _one_of(await _form(request), "act", ACTS)
        if intent.status != ASKS:
            return bank_page(intent, status=409)
        self._bank.act(ref, action)
        await self._ledger.committed()
        return back_to_shop(intent)

    async def _file(self, request: BaseRequest, _: dict[str, str]) -> Response:
        return file(request.path)

    async def _set_rate(self, request: BaseRequest, _: dict[str, str]) -> Response:
        """Set the rate at which the demo places orders."""
        self._switch.rate = _one_of(await _form(request), "rate", RATES)
        return back_to("/#customers")

    async def _break(self, request: BaseRequest, _: dict[str, str]) -> Response:
        """Put a preset fault in force; an empty `times` means until healed."""
        form = await _form(request)
        partner = _one_of(form, "partner", SHOWN)
        preset = PRESETS[_one_of(form, "preset", PRESETS)]
        times = _one_of(form, "times", LIMITS)
        limit = int(times) if times else None
        self._script.put(partner, {**preset.fault, "partner": partner, "times": limit})
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
        """Remove one fault; one that is already removed is not an error."""
        ref = (await _form(request)).get("id", "")
        if not (ref.isascii() and ref.isdigit() and len(ref) < 16):
            raise bad_field("id", f"'id' must be the number of a fault, not {ref!r}.")
        self._script.remove(int(ref))
        return back_to("/#faults")


def _last_part(request: BaseRequest) -> str:
    return request.path.rpartition("/")[2]


async def _form(request: BaseRequest) -> dict[str, str]:
    body = await request.read()
    return dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))


def _one_of(form: Mapping[str, str], field: str, known: Mapping[str, object]) -> str:
    value = form.get(field, "")
    if value not in known:
        choices = ", ".join(repr(name) for name in known)
        raise bad_field(field, f"'{field}' must be one of {choices}, not {value!r}.")
    return value
