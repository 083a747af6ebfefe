"""What an HTTP answer means: its effect is certain, in doubt or none; the service is well or not."""

import json
from collections.abc import Mapping
from email.utils import mktime_tz, parsedate_tz
from typing import Any, NamedTuple, TypeVar

import aiohttp

from ..database import clock
from ..payloads import typed
from ..states import Health
from .errors import Fault, Transient, Unknown

Expected = TypeVar("Expected")
Fields = Mapping[str, type] | None
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


class Answer(NamedTuple):
    """A response: status, body, and the pause that the service asked for, in seconds."""

    status: int
    raw: bytes
    retry_after: float | None


async def read(response: aiohttp.ClientResponse) -> Answer:
    """Return a whole response; raise `Unknown` if its body is too large."""
    pause = _pause(response.headers) if response.status in ASK_FOR_PAUSE else None
    body = await response.content.readany()
    while not response.content.at_eof() and len(body) <= LARGEST_ANSWER:
        body += await response.content.readany()
    if len(body) > LARGEST_ANSWER:
        raise Unknown("answer_too_large", f"more than {LARGEST_ANSWER} bytes")
    return Answer(response.status, body, pause)


def failure(answer: Answer) -> Fault | None:
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


def as_expected(
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


def as_object(raw: bytes) -> dict[str, Any] | None:
    """Return a body as a JSON object; None if it is none."""
    try:
        answer = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def message(answer: Mapping[str, Any]) -> str:
    """Return the error message of a refusal; empty if it has none."""
    error = answer.get("error")
    text = error.get("message") if isinstance(error, Mapping) else None
    text = text or answer.get("message")
    return str(text) if text else ""


def _error_text(raw: bytes) -> str:
    """Return the error message of a body, or the body's beginning."""
    return message(as_object(raw) or {}) or _excerpt(raw)


def _excerpt(raw: bytes) -> str:
    return raw[:300].decode("utf-8", "replace")
