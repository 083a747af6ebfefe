"""The ledger as `GET /ledger` shows it: pages of entries in the order of `seq`, streamed.

An auditor reads a ledger of hundreds of thousands of entries while the partners go on working. So
a long page is sent in pieces, with the calls of others answered in between.
"""

import asyncio
from datetime import UTC, datetime

from aiohttp.web import BaseRequest, StreamResponse

from sandbox.journal import encode
from sandbox.ledger import Ledger
from sandbox.partner import Entry, Json
from sandbox.refusals import bad_field
from sandbox.wire import JSON_HEADERS, reply

MOST = 10_000  # entries in one page of the ledger
USUAL = 1_000
CHUNK = 500  # entries in one write

Query = dict[str, str]


async def list_entries(request: BaseRequest, ledger: Ledger, query: Query) -> StreamResponse:
    """Answer {"entries": [...], "next": seq or null}; `next` is the `after` of the next page.

    The query takes after, limit, partner, order and key; raises a 400 Refusal.
    """
    found, following = find(ledger, query)
    if len(found) <= CHUNK:
        return reply({"entries": [show_entry(entry) for entry in found], "next": following})
    response = StreamResponse(headers=JSON_HEADERS)
    await response.prepare(request)
    for start in range(0, len(found), CHUNK):
        rows = ",".join([encode(show_entry(entry)) for entry in found[start : start + CHUNK]])
        await response.write((("," if start else '{"entries":[') + rows).encode())
        await asyncio.sleep(0)
    await response.write(f'],"next":{encode(following)}}}'.encode())
    return response


def find(ledger: Ledger, query: Query) -> tuple[list[Entry], int | None]:
    """Return the entries of one page, and the `seq` after which the next page begins, if any."""
    after = number(query, "after", 0, 0)
    limit = min(number(query, "limit", USUAL, 1), MOST)
    if not query.keys() & {"partner", "order", "key"}:
        found = ledger.entries[after : after + limit + 1]  # the entry `seq` stands at seq - 1
    else:
        found = []
        for entry in _candidates(ledger, query, after):
            if entry.seq > after and query.get("partner", entry.partner) == entry.partner:
                found.append(entry)
                if len(found) > limit:
                    break
    more = len(found) > limit
    found = found[:limit]
    return found, found[-1].seq if more else None


def _candidates(ledger: Ledger, query: Query, after: int) -> list[Entry]:
    """Return the smallest list at hand that holds all entries asked for."""
    if "key" in query:
        entry = ledger.keys.get(query["key"])
        wanted = entry is not None and query.get("order", entry.order) == entry.order
        return [entry] if entry and wanted else []
    if "order" in query:
        return ledger.by_order.get(query["order"], [])
    return ledger.entries[after:]


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
    if entry.effect == "reserve":
        shown["lines"] = [{"sku": sku, "quantity": number} for sku, number in entry.detail]
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
