"""The ledger as `GET /ledger` shows it: pages of entries in the order of `seq`, streamed.

An auditor reads a ledger of hundreds of thousands of entries while the partners are in use. A page
is therefore read and sent in pieces, with other requests answered in between.
"""

import asyncio
from datetime import UTC, datetime

from aiohttp.web import BaseRequest, StreamResponse

from sandbox.goods import show_lines
from sandbox.ledger import Ledger
from sandbox.partner import Entry, Json
from sandbox.refusals import bad_field
from sandbox.responses import JSON_HEADERS, encode
from sandbox.stock import show_change

MAX_LIMIT = 10_000  # entries in one page of the ledger
DEFAULT_LIMIT = 1_000
PIECE = 500  # entries in one write
FILTERS = ("partner", "order", "key")

Query = dict[str, str]


async def list_entries(request: BaseRequest, ledger: Ledger, query: Query) -> StreamResponse:
    """Answer {"entries": [...], "next": seq or null}; `next` is the `after` of the next page.

    The query takes after, limit, partner, order and key; raises a 400 Refusal.
    """
    after = number(query, "after", 0, 0)
    end = ledger.last_seq  # later entries are for a later page
    left = min(number(query, "limit", DEFAULT_LIMIT, 1), MAX_LIMIT)
    response = StreamResponse(headers=JSON_HEADERS)
    await response.prepare(request)
    separator, more = '{"entries":[', True
    while left and more:
        entries, more = find(ledger, query, after, end, min(left, PIECE))
        rows = ",".join([encode(show_entry(entry)) for entry in entries])
        await response.write((separator + rows).encode())
        await asyncio.sleep(0)
        if entries:
            separator, after, left = ",", entries[-1].seq, left - len(entries)
    await response.write(f'],"next":{encode(after if more else None)}}}'.encode())
    return response


def find(
    ledger: Ledger, query: Query, after: int, end: int, limit: int
) -> tuple[list[Entry], bool]:
    """Return up to `limit` entries with after < seq <= end, and whether there are more."""
    filters = [name for name in FILTERS if name in query]
    clause = "WHERE seq > ? AND seq <= ?" + "".join(f' AND "{name}" = ?' for name in filters)
    values = [query[name] for name in filters]
    entries = list(ledger.select(clause + " ORDER BY seq LIMIT ?", after, end, *values, limit + 1))
    return entries[:limit], len(entries) > limit


def show_entry(entry: Entry) -> Json:
    """Return an entry as a JSON object.

    `seq` counts from 1; `at` is ISO 8601 in UTC, to the millisecond; `effect` is what happened
    ("none" for a refusal, and for an undo that found nothing to undo); `target` is the key whose do
    an undo by key undid; `ref` is the id of the object made or changed, `parent` the id of the one
    it belongs to; `amount` is in minor units; `requests` counts how often the key was requested.
    """
    at = datetime.fromtimestamp(entry.at, UTC).isoformat(timespec="milliseconds")
    shown: Json = {
        "seq": entry.seq,
        "partner": entry.partner,
        "action": entry.action,
        "effect": entry.effect,
        "key": entry.key,
        "order": entry.order,
        "amount": entry.amount,
        "currency": entry.currency,
        "ref": entry.ref,
        "parent": entry.parent,
        "target": entry.target,
        "status": "rejected" if entry.rejected else "done",
        "http_status": entry.http,
        "error": entry.detail["code"] if entry.rejected else None,
        "at": at.replace("+00:00", "Z"),
        "requests": entry.requests,
    }
    if entry.effect in {"reserve", "release_part"}:
        shown["lines"] = show_lines(entry.detail)
    if entry.effect == "adjust":
        shown["change"] = show_change(entry.detail)
    if entry.effect == "stock":
        shown["stock"] = entry.detail
    return shown


def number(query: Query, name: str, default: int, least: int) -> int:
    """Return a whole number of the query, or the default; raises a 400 Refusal."""
    value = query.get(name)
    if value is None:
        return default
    if not (value.isascii() and value.isdigit() and len(value) < 16 and int(value) >= least):
        raise bad_field(
            name, f"'{name}' must be a whole number of at least {least}, not {value!r}."
        )
    return int(value)
