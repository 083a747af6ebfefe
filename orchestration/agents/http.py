"""An agent for a service that speaks HTTP and JSON."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import aiohttp

from .base import Agent, Call, Rejected, Transient, Unknown

LARGEST_ANSWER = 1_000_000  # bytes
NOTHING_DONE = {425, 429, 503}  # statuses by which a service says that it did not even start
# refused before anybody looked at the key, for a wrong credential or address of ours: what an earlier
# call under this key did is as open as before, and a repeat succeeds once that is mended
NOT_HEARD = {401, 403, 404, 405, 407}
IN_DOUBT = {408}  # a proxy may say so after the request went through


class HttpAgent(Agent):
    """Calls one service over kept-open connections, and tells its failures apart.

    Set `base_url`. A refusal (4xx) is `Rejected`; "too busy", "cannot be reached", "you may not
    come in" are `Transient`; whatever leaves it open whether the effect happened (a time-out, a cut
    connection, another 5xx, an answer that cannot be read) is `Unknown`.
    """

    base_url: ClassVar[str]
    key_header: ClassVar[str] = "Idempotency-Key"

    def __init__(self, instance: str = "agent") -> None:
        super().__init__(instance)
        self._session: aiohttp.ClientSession | None = None

    def headers(self) -> dict[str, str]:
        """Return headers for every call, such as credentials."""
        return {}

    def refusal(self, status: int, answer: Mapping[str, Any]) -> Rejected | Transient:
        """Return what a 4xx answer means; services with conventions of their own override this."""
        error = answer.get("error")
        detail = error if isinstance(error, Mapping) else {}
        code = str(detail.get("code") or f"http_{status}")
        return Rejected(code, str(detail.get("message") or answer.get("message") or ""))

    async def post(
        self,
        call: Call,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        form: Mapping[str, str] | None = None,
        expect: Mapping[str, type] | None = None,
    ) -> dict[str, Any]:
        """POST JSON (`body`) or a form under the call's key; return the answer's JSON object.

        `expect` names the fields the answer must have, and their types.
        """
        status, raw = await self._send(call, path, body, form)
        if status in NOTHING_DONE or status in NOT_HEARD:
            raise Transient(f"http_{status}", _excerpt(raw))
        if status >= 500 or status in IN_DOUBT:
            raise Unknown(f"http_{status}", _excerpt(raw))
        answer = _as_object(raw)
        if status >= 400:
            raise self.refusal(status, answer or {"message": _excerpt(raw)})
        if status >= 300 or answer is None:
            raise Unknown("unreadable_answer", f"HTTP {status}: {_excerpt(raw)}")
        for name, kind in (expect or {}).items():
            if not isinstance(answer.get(name), kind):
                raise Unknown("unexpected_answer", f"no {name} in: {_excerpt(raw)}")
        return answer

    async def _send(
        self,
        call: Call,
        path: str,
        body: Mapping[str, Any] | None,
        form: Mapping[str, str] | None,
    ) -> tuple[int, bytes]:
        headers = {self.key_header: call.key}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            async with self._open().post(
                self.base_url + path,
                data=json.dumps(body).encode() if body is not None else form,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=call.timeout),
                allow_redirects=False,
            ) as response:
                return response.status, await _read(response)
        except aiohttp.ClientConnectorError as error:
            raise Transient("unreachable", str(error)) from error
        except TimeoutError as error:
            raise Unknown("timeout", f"no answer within {call.timeout:.1f} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unknown("connection_lost", f"{type(error).__name__}: {error}") from error

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # the gate's window bounds the calls in flight, not the connector
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=self.headers(),
            )
        return self._session

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """Return the whole body, however many pieces it comes in."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > LARGEST_ANSWER:
            raise Unknown("answer_too_large", f"more than {LARGEST_ANSWER} bytes")
    return bytes(body)


def _as_object(raw: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def _excerpt(raw: bytes) -> str:
    return raw[:300].decode("utf-8", "replace")
