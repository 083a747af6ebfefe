"""The mailbox: the messages that the mailer accepted, newest first."""

import re
from collections.abc import Iterator
from html import escape
from itertools import islice
from urllib.parse import urlencode

from aiohttp.web import Response

from sandbox.ledger import Ledger
from sandbox.listing import number
from sandbox.mail import Mail
from sandbox.partner import Entry
from sandbox.refusals import Refusal
from sandbox.site.layout import HEADERS, clock, document

PAGE_SIZE = 30  # messages
LINK = re.compile(r"https?://[^\s<>\"]*[^\s<>\".,;:!?)\]']")
# As a mail program does, allow styles within the message and nothing else. The frame has an origin
# of its own and no scripts; links open in a new tab.
MESSAGE_POLICY = (
    "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; "
    "style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
)
MESSAGE_HEADERS = HEADERS | {
    "Content-Security-Policy": MESSAGE_POLICY,
    "X-Frame-Options": "SAMEORIGIN",
}
HEAD = re.compile(r"<head[^>]*>", re.IGNORECASE)

SENT = "WHERE effect = 'send'"

Query = dict[str, str]


def select(ledger: Ledger, query: Query) -> Iterator[Entry]:
    """Yield messages, newest first; filters: `order`, `to` (part of the recipient), `before` (seq)."""
    clause = SENT
    values: list[object] = []
    if "order" in query:
        clause += ' AND "order" = ?'
        values.append(query["order"])
    if before := number(query, "before", 0, 1):
        clause += " AND seq < ?"
        values.append(before)
    recipient = query.get("to", "").strip().casefold()
    for entry in ledger.select(f"{clause} ORDER BY seq DESC", *values):
        if recipient in entry.detail["to"].casefold():
            yield entry


def mailbox(ledger: Ledger, query: Query) -> Response:
    """Return a page of the mailbox; raises a 400 Refusal for an invalid `before`."""
    mail, to = ledger.mail, query.get("to", "").strip()
    entries = list(islice(select(ledger, query), PAGE_SIZE + 1))
    rows = "".join(_message(mail, entry) for entry in entries[:PAGE_SIZE])
    total = ledger.count(SENT)
    nothing = "No messages to this recipient." if to else "No messages yet."
    none = f'<li id="no-mail" class="none">{nothing}</li>'
    body = (
        '<div class="top"><div><h1>Mail</h1><p class="lead">Messages sent to customers: '
        f'<span id="total" data-live data-count="{total}">{total:,}</span></p>'
        '</div><p id="pulse" class="badge"><a href="">Refresh</a></p></div>'
        '<form class="filter" role="search"><label for="to">Recipient</label>'
        f'<input id="to" name="to" type="search" value="{escape(to)}" autocomplete="off">'
        f"<button>Filter</button>{'<a href=/mail/>Show all</a>' if to else ''}</form>"
        '<ol id="mails" class="mails" reversed data-live-list>'
        f"{rows or none}</ol>{_older(to, entries)}"
    )
    return document("Mail · Sandbox", body, at="/mail/")


def message(ledger: Ledger, query: Query) -> Response:
    """Return the HTML of the message with this `id`; raises a 404 Refusal."""
    entry = next(ledger.select(f"{SENT} AND ref = ?", query.get("id", "")), None)
    text = entry.detail.get("html") if entry else None
    if text is None:
        raise Refusal(404, "unknown_id", "Unknown message, or a message without HTML.")
    target = '<base target="_blank">'
    text, times = HEAD.subn(lambda head: head[0] + target, text, count=1)
    text = text if times else f"<!doctype html>{target}{text}"
    return Response(text=text, content_type="text/html", headers=MESSAGE_HEADERS)


def linked(text: str) -> str:
    """Return plain text as HTML, with URLs as links."""
    pieces, end = [], 0
    for match in LINK.finditer(text):
        address = escape(match[0])
        pieces.append(escape(text[end : match.start()]))
        pieces.append(f'<a href="{address}" rel="noreferrer">{address}</a>')
        end = match.end()
    return "".join(pieces) + escape(text[end:])


def _message(mail: Mail, entry: Entry) -> str:
    sent, ref = entry.detail, escape(entry.ref or "")
    to = escape(sent["to"])
    recalled = '<b class="badge mild">Recalled</b>' if entry.ref in mail.recalled else ""
    order = f" · order <code>{escape(entry.order)}</code>" if entry.order else ""
    return (
        f'<li id="{ref}" class="card"><article aria-labelledby="{ref}-subject">'
        f'<div class="head"><h2 id="{ref}-subject">{escape(sent["subject"])}</h2>'
        f'<span id="{ref}-state" data-live>{recalled}</span></div>'
        f'<p class="note">To <a href="/mail/?{urlencode({"to": sent["to"]})}">{to}</a> · '
        f"{clock(entry.at)} UTC{order}</p>"
        f'<p class="text">{linked(sent["text"])}</p>{_alternative(entry)}</article></li>'
    )


def _alternative(entry: Entry) -> str:
    text = entry.detail.get("html")
    if text is None:
        return ""
    subject, ref = escape(entry.detail["subject"]), escape(entry.ref or "")
    return (
        "<details><summary>As HTML</summary>"
        f'<iframe title="{subject}, as HTML" src="/mail/html?id={ref}" loading="lazy" '
        'sandbox="allow-popups allow-popups-to-escape-sandbox"></iframe></details>'
        "<details><summary>HTML source</summary>"
        f'<pre tabindex="0" role="region" aria-label="{subject} ({ref}), HTML source">'
        f"{escape(text)}</pre></details>"
    )


def _older(to: str, entries: list[Entry]) -> str:
    if len(entries) <= PAGE_SIZE:
        return ""
    query = escape(urlencode({"to": to, "before": entries[PAGE_SIZE - 1].seq}))
    return f'<p><a class="button" href="/mail/?{query}">Older messages</a></p>'
