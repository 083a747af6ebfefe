"""An agent for a service that speaks HTTP and JSON."""

import json
from collections.abc import Iterable, Mapping
from email.utils import mktime_tz, parsedate_tz
from typing import Any, ClassVar, NamedTuple, TypeVar, overload
from urllib.parse import urlsplit

import aiohttp
import msgspec

from ..database import clock
from ..payloads import typed
from ..payloads.secrets import is_secret_name
from ..states import Health
from ..tracing import spans, switch
from .actions import Call
from .base import Agent
from .errors import TIMEOUT, Fault, Rejected, Transient, Unknown
from .evidence import Heard

Expected = TypeVar("Expected")
Fields = Mapping[str, type] | None
Form = Mapping[str, str] | None
NONE = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None)
LONGEST_PAUSE = 86_400.0  # seconds; a longer Retry-After is taken as a mistake
LARGEST_ANSWER = 1_000_000  # bytes
TOO_MANY = 429  # with Retry-After it applies to all calls
NOTHING_DONE = {425, TOO_MANY}  # statuses of a request that the service did not start
# with Retry-After it means the same; without, a proxy may have forwarded the request
UNAVAILABLE = 503
ASK_FOR_PAUSE = {*NOTHING_DONE, UNAVAILABLE}
# refused before the key was read, for a wrong credential or address: an earlier call under this key
# stays in doubt, and a repeat succeeds after the fix
NOT_EXAMINED = {401, 403, 404, 405, 407}
ONE_RESOURCE = {404, 405}  # the service is healthy: only this address or method is wrong
IN_DOUBT = {408}  # a proxy may answer so after it forwarded the request
# successes that have no body: any other one without an object may be cut off, or a proxy's
WITHOUT_BODY = {204, 205}
AT_WORK = {409, 423}  # the conflict may be with an earlier call under the same key that still runs


class Answer(NamedTuple):
    """A response: status, body, and the pause that the service asked for, in seconds."""

    status: int
    raw: bytes
    retry_after: float | None


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
        code, message = str(detail.get("code") or f"http_{status}"), _message(answer)
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
        fault = _failure(answer)
        if fault is not None:
            raise fault
        parsed = _as_object(answer.raw)
        if answer.status >= 400 and parsed is not None:
            raise self.refusal(answer.status, parsed)
        if answer.status in WITHOUT_BODY and not expect:
            return {}
        return _as_expected(answer, parsed, expect)

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
        parsed = _as_object(answer.raw)
        if 400 <= answer.status < 500 and self.knows_nothing(answer.status, parsed or {}):
            return None
        fault = _failure(answer)
        if fault is not None:
            raise fault
        if answer.status >= 400 and parsed is not None:
            refusal = self.refusal(answer.status, parsed)
            if isinstance(refusal, Rejected):
                raise Unknown(refusal.code, refusal.message, health=Health.GOOD)
            raise refusal
        return _as_expected(answer, parsed, expect)

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
                pause = _pause(response.headers) if response.status in ASK_FOR_PAUSE else None
                return Answer(response.status, await _read(response), pause)
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


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """Return the whole body; raise `Unknown` if it is too large."""
    body = await response.content.readany()
    while not response.content.at_eof() and len(body) <= LARGEST_ANSWER:
        body += await response.content.readany()
    if len(body) > LARGEST_ANSWER:
        raise Unknown("answer_too_large", f"more than {LARGEST_ANSWER} bytes")
    return body


def _failure(answer: Answer) -> Fault | None:
    """Return the fault if the request was not examined, or its effect is unknown; else None."""
    code = f"http_{answer.status}"
    if answer.status == UNAVAILABLE and answer.retry_after is not None:
        return Transient(code, _error_text(answer.raw), retry_after=answer.retry_after)
    if answer.status in NOTHING_DONE or answer.status in NOT_EXAMINED:
        health = Health.GOOD if answer.status in ONE_RESOURCE else None
        if answer.status == TOO_MANY and answer.retry_after is not None:
            health = Health.BUSY
        text = _error_text(answer.raw)
        return Transient(code, text, retry_after=answer.retry_after, health=health)
    if answer.status >= 500 or answer.status in IN_DOUBT:
        return Unknown(code, _error_text(answer.raw))
    return None


def _as_expected(
    answer: Answer, parsed: dict[str, Any] | None, expect: type[Expected] | Fields
) -> Expected | dict[str, Any]:
    """Return the JSON object of a success; raise `Unknown` unless it is as `expect`ed.

    An unreadable refusal is in doubt, too: a repeat gets it again.
    """
    if answer.status >= 300 or parsed is None:
        health = Health.NOTHING if 400 <= answer.status < 500 else None
        what = f"HTTP {answer.status}: {_excerpt(answer.raw)}"
        raise Unknown("unreadable_answer", what, health=health)
    if isinstance(expect, type):
        try:
            return typed.read(parsed, expect)
        except ValueError as error:
            raise Unknown("unexpected_answer", f"{error}: {_excerpt(answer.raw)}") from None
    for name, kind in (expect or {}).items():
        if not isinstance(parsed.get(name), kind):
            raise Unknown("unexpected_answer", f"no {name} in: {_excerpt(answer.raw)}")
    return parsed


def _pause(headers: Mapping[str, str]) -> float | None:
    """Return Retry-After in seconds; the header is a number or a date."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text), LONGEST_PAUSE)
    until = _time(text)
    if until is None:
        return None
    # measured by the service's own clock, if it sends the time
    now = _time(headers.get("Date", "")) or clock.now()
    return min(max(0.0, until - now), LONGEST_PAUSE)


def _time(text: str) -> float | None:
    """Return an HTTP date as Unix time; None if it is not a date."""
    try:
        parsed = parsedate_tz(text)
        return None if parsed is None else float(mktime_tz((*parsed[:9], parsed[9] or 0)))
    except (ValueError, OverflowError, TypeError):
        return None


def _as_object(raw: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def _message(answer: Mapping[str, Any]) -> str:
    """Return the error message of a refusal; empty if it has none."""
    error = answer.get("error")
    text = error.get("message") if isinstance(error, Mapping) else None
    text = text or answer.get("message")
    return str(text) if text else ""


def _error_text(raw: bytes) -> str:
    """Return the error message of a body, or the body's beginning."""
    return _message(_as_object(raw) or {}) or _excerpt(raw)


def _excerpt(raw: bytes) -> str:
    return raw[:300].decode("utf-8", "replace")
