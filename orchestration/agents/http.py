"""An agent for a service that speaks HTTP and JSON."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, overload
from urllib.parse import urlsplit

import aiohttp
import msgspec

from ..payloads.secrets import is_secret_name
from ..states import Health
from ..tracing import spans, switch
from . import http_answer
from .actions import Call
from .base import Agent
from .errors import TIMEOUT, Fault, Rejected, Transient, Unknown
from .evidence import Heard
from .http_answer import WITHOUT_BODY, Answer, Expected, Fields

Form = Mapping[str, str] | None
AT_WORK = {409, 423}  # the conflict may be with an earlier call under the same key that still runs
NONE = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None)


class HttpAgent(Agent):
    """Calls one service over persistent connections, and classifies its failures.

    Set `base_url`. A refusal (4xx) is `Rejected`. A service that is too busy, unreachable or denies
    access is `Transient`. Where the effect may have happened (a timeout, a broken connection, a conflict,
    a 5xx, an unreadable body) the fault is `Unknown`. Retry-After is respected (RFC 9110, 10.2.3).

    Set `stores_refusals` only if the service keeps every refusal under its key and returns it to each
    repeat. Otherwise a refusal proves nothing about earlier calls under the key.

    >>> class Hotel(HttpAgent):
    ...     name, base_url = "hotel", "https://hotel.example"
    ...     @action
    ...     async def book(self, call):
    ...         return await self.post(call, "/rooms", body=call.payload, expect={"room": int})
    """

    base_url: ClassVar[str]
    key_header: ClassVar[str] = "Idempotency-Key"
    stores_refusals: ClassVar[bool] = False

    def __init__(self, instance: str = "agent") -> None:
        super().__init__(instance)
        self._session: aiohttp.ClientSession | None = None

    def headers(self) -> dict[str, str]:
        """Return headers, such as credentials; called before each request."""
        return {}

    def refusal(self, status: int, answer: Mapping[str, Any]) -> Fault:
        """Return the fault of a 4xx response; override it for a service with its own conventions."""
        error = answer.get("error")
        detail = error if isinstance(error, Mapping) else {}
        code, message = str(detail.get("code") or f"http_{status}"), http_answer.message(answer)
        if status in AT_WORK:
            return Unknown(code, message, health=Health.GOOD)
        return Rejected(code, message, stored=self.stores_refusals)

    @overload
    async def post(
        self, call: Call, path: str, *, body: Any = None, form: Form = None, expect: type[Expected]
    ) -> Expected: ...
    @overload
    async def post(
        self, call: Call, path: str, *, body: Any = None, form: Form = None, expect: Fields = None
    ) -> dict[str, Any]: ...
    async def post(
        self,
        call: Call,
        path: str,
        *,
        body: Any = None,
        form: Form = None,
        expect: type[Expected] | Fields = None,
    ) -> Expected | dict[str, Any]:
        """POST JSON (`body`) or a form under the call's key; return the answer's JSON object.

        `expect` names the fields the answer must have, and their types, or is the dataclass or msgspec
        Struct as which it is returned. `body` may be one, too. Without it, 204 and 205 (no content) give {}.
        """
        headers = {self.key_header: call.key}
        if body is not None:
            headers["Content-Type"] = "application/json"
        data = msgspec.json.encode(body) if body is not None else form
        answer = await self._send("POST", call, path, data=data, headers=headers)
        fault = http_answer.failure(answer)
        if fault is not None:
            raise fault
        parsed = http_answer.as_object(answer.raw)
        if answer.status >= 400 and parsed is not None:
            raise self.refusal(answer.status, parsed)
        if answer.status in WITHOUT_BODY and not expect:
            return {}
        return http_answer.as_expected(answer, parsed, expect)

    @overload
    async def get(self, call: Call, path: str, *, expect: type[Expected]) -> Expected | None: ...
    @overload
    async def get(
        self, call: Call, path: str, *, expect: Fields = None
    ) -> dict[str, Any] | None: ...
    async def get(
        self, call: Call, path: str, *, expect: type[Expected] | Fields = None
    ) -> Expected | dict[str, Any] | None:
        """GET the answer to a question, a JSON object; None if the service knows of no effect.

        A refused question does not mean that the action was refused: it is `Unknown`.
        """
        answer = await self._send("GET", call, path)
        parsed = http_answer.as_object(answer.raw)
        if 400 <= answer.status < 500 and self.knows_nothing(answer.status, parsed or {}):
            return None
        fault = http_answer.failure(answer)
        if fault is not None:
            raise fault
        if answer.status >= 400 and parsed is not None:
            refusal = self.refusal(answer.status, parsed)
            if isinstance(refusal, Rejected):
                raise Unknown(refusal.code, refusal.message, health=Health.GOOD)
            raise refusal
        return http_answer.as_expected(answer, parsed, expect)

    def knows_nothing(self, status: int, answer: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Return whether a 4xx answer to a question proves that there was no effect.

        A bare 404 does not: a wrong address or a proxy gives it, too. Override this for a service whose
        body states it.
        """
        return False

    async def _send(
        self,
        method: str,
        call: Call,
        path: str,
        *,
        data: bytes | Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        if not switch.ON:
            answer = await self._exchange(method, call, path, data, headers or {})
        else:
            host = urlsplit(self.base_url).hostname or ""
            with spans.calling(method, call.action, host) as traced:
                sent = {**(headers or {}), **traced.headers}
                answer = await self._exchange(method, call, path, data, sent)
                traced.status = answer.status
        call.heard[:] = (Heard(answer.status, answer.raw),)
        return answer

    def secrets(self) -> Iterable[str]:
        """Yield the credentials among the headers, and those in the address."""
        for name, value in self.headers().items():
            if is_secret_name(name):
                yield value
                yield value.rpartition(" ")[2]  # after the scheme
        if password := urlsplit(self.base_url).password:
            yield password

    async def _exchange(
        self,
        method: str,
        call: Call,
        path: str,
        data: bytes | Mapping[str, str] | None,
        headers: Mapping[str, str],
    ) -> Answer:
        try:
            async with self._open().request(
                method,
                self.base_url + path,
                data=data,
                headers={**self.headers(), **headers},
                timeout=NONE,
                allow_redirects=False,
            ) as response:
                return await http_answer.read(response)
        except aiohttp.ClientConnectorError as error:
            raise Transient("unreachable", str(error)) from error
        except TimeoutError as error:
            raise Unknown(TIMEOUT, f"no answer within {call.timeout:.1f} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unknown("connection_lost", f"{type(error).__name__}: {error}") from error

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # the gate's window limits the calls in flight, not the connector
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None
