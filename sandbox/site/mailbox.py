"""The mail folder: what the mailer was sent, newest first."""

import re
from collections.abc import Iterator
from html import escape
from itertools import islice
from urllib.parse import urlencode

from aiohttp.web import Response

from sandbox.ledger import Ledger
from sandbox.listing import number
from sandbox.partner import Entry
from sandbox.refusals import Refusal
from sandbox.simple import Mail
from sandbox.site.frame import HEADERS, clock, count, document

MOST = 30  # messages in one page
LINK = re.compile(r"https?://[^\s<>\"]*[^\s<>\".,;:!?)\]']")
# What a customer's mail program would allow: styles within the message, and nothing else. The frame
# has an origin of its own and no scripts; links open in a tab of theirs.
MESSAGE_POLICY = (
    "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; "
    "style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
)
MESSAGE_HEADERS = HEADERS | {
    "Content-Security-Policy": MESSAGE_POLICY,
    "X-Frame-Options": "SAMEORIGIN",
}
HEAD = re.compile(r"<head[^>]*>", re.IGNORECASE)

Query = dict[str, str]


def select(ledger: Ledger, query: Query) -> Iterator[Entry]:
    """Yield messages, newest first: of an `order`, whose recipient holds `to`, before a `seq`."""
    sent = ledger.mail.sent
    newest_first: Iterator[Entry] = reversed(sent.values())
    if "order" in query:
        of_order = reversed(ledger.by_order.get(query["order"], []))
        newest_first = (entry for entry in of_order if sent.get(entry.ref or "") is entry)
    wanted = query.get("to", "").strip().casefold()
    before = number(query, "before", 0, 1)
    for entry in newest_first:
        if before and entry.seq >= before:
            continue
        if wanted in entry.detail["to"].casefold():
            yield entry


def mailbox(ledger: Ledger, query: Query) -> Response:
    """Return a page of the folder; raises a 400 Refusal for a senseless `before`."""
    mail, to = ledger.mail, query.get("to", "").strip()
    found = list(islice(select(ledger, query), MOST + 1))
    rows = "".join(_message(mail, entry) for entry in found[:MOST])
    none = "No message to such a recipient." if to else "No message has been sent."
    body = (
        '<div class="top"><div><h1>Mail</h1><p class="lead">What customers would find in their '
        f'inboxes: <span id="total" data-live>{count(len(mail.sent), "message")}</span> so far.</p>'
        '</div><p id="pulse" class="badge"><a href="">Refresh</a></p></div>'
        '<form class="filter" role="search"><label for="to">Recipient</label>'
        f'<input id="to" name="to" type="search" value="{escape(to)}" autocomplete="off">'
        f"<button>Filter</button>{'<a href=/mail/>Show all</a>' if to else ''}</form>"
        '<ol id="mails" class="mails" reversed data-live-list>'
        f"{rows or f'<li id=no-mail class=none>{none}</li>'}</ol>{_older(to, found)}"
    )
    return document("Mail, Partners' sandbox", body, at="/mail/")


def message(mail: Mail, query: Query) -> Response:
    """Return the HTML of the message with the `id` asked for; raises a 404 Refusal."""
    entry = mail.sent.get(query.get("id", ""))
    text = entry.detail.get("html") if entry else None
    if text is None:
        raise Refusal(404, "unknown_id", "There is no such message, or it has no HTML.")
    target = '<base target="_blank">'
    text, times = HEAD.subn(lambda head: head[0] + target, text, count=1)
    text = text if times else f"<!doctype html>{target}{text}"
    return Response(text=text, content_type="text/html", headers=MESSAGE_HEADERS)


def linked(text: str) -> str:
    """Return plain text as HTML, with its addresses as links."""
    pieces, end = [], 0
    for found in LINK.finditer(text):
        address = escape(found[0])
        pieces.append(escape(text[end : found.start()]))
        pieces.append(f'<a href="{address}" rel="noreferrer">{address}</a>')
        end = found.end()
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


def _older(to: str, found: list[Entry]) -> str:
    if len(found) <= MOST:
        return ""
    query = escape(urlencode({"to": to, "before": found[MOST - 1].seq}))
    return f'<p><a class="button" href="/mail/?{query}">Older messages</a></p>'
