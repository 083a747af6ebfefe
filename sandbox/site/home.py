"""The partners' page: the state and the effects of each, and buttons to break and heal it."""

import time
from collections.abc import Mapping
from html import escape

from aiohttp.web import Response

from sandbox.cards import CARDS
from sandbox.demo_switch import DemoSwitch
from sandbox.fault_script import FaultScript
from sandbox.faults import Fault
from sandbox.ledger import Ledger
from sandbox.partner import NO_EFFECT, Entry
from sandbox.requests import PATHS
from sandbox.site.demo_switch import demo_switch
from sandbox.site.faults import (
    LIMITS,
    PRESETS,
    PartnerState,
    active_preset,
    describe_effect,
    describe_scope,
    partner_state,
)
from sandbox.site.layout import clock, count, document, duration, money
from sandbox.traffic import BARS, SPAN, Bar, Traffic

SHOWN = {
    "inventory": "Inventory",
    "payment": "Payment",
    "shipping": "Shipping",
    "courier": "Courier",
    "mail": "Mail",
}
DUTIES = {
    "inventory": "Reserves stock and releases it.",
    "payment": "Authorizes, captures and refunds money.",
    "shipping": "Books parcels and cancels them; not to Portugal.",
    "courier": "Books parcels where the other carrier does not go.",
    "mail": "Sends messages.",
}
LATEST = 10  # effects in the list
CHART_HEIGHT = 36  # units of the view box
SHOWN_ENTRIES = "WHERE seq > ? AND partner <> 'bench' ORDER BY seq DESC LIMIT ?"


def home(
    ledger: Ledger,
    script: FaultScript,
    traffic: Mapping[str, Traffic],
    switch: DemoSwitch,
    host: str,
) -> Response:
    """Return the page."""
    states = {partner: partner_state(partner, script.faults) for partner in SHOWN}
    cards = "".join(
        _card(partner, states[partner], script.faults, traffic[partner]) for partner in SHOWN
    )
    body = (
        '<div class="top"><div><h1>Partners&rsquo; sandbox</h1>'
        '<p class="lead">The remote services that orders depend on. '
        "Break one, place an order, heal the partner, and watch the order finish.</p></div>"
        '<p id="pulse" class="badge"><a href="/">Refresh</a></p></div>'
        f'<div class="sum"><p id="summary" data-live role="status">{_summary(states)}</p>'
        '<form method="post" action="/faults/heal"><button class="heal">Heal all</button></form>'
        f'</div><div class="cards">{cards}</div>'
        f"{demo_switch(switch)}{_faults(script.faults)}{_latest(ledger)}{_test_cards()}{_paths(script, host)}"
    )
    return document("Partners' sandbox", body, at="/")


def _summary(states: Mapping[str, PartnerState]) -> str:
    broken = [
        f"{SHOWN[partner]} is {state.word.lower()}"
        for partner, state in states.items()
        if state.fault is not None
    ]
    if not broken:
        return "All partners work."
    rest = {len(SHOWN): "", len(SHOWN) - 1: " The other one works."}
    return ", ".join(broken) + "." + rest.get(len(broken), " The others work.")


def _card(partner: str, state: PartnerState, faults: list[Fault], traffic: Traffic) -> str:
    name, total = SHOWN[partner], traffic.total()
    figures = "".join(
        f'<div><dt>{label}</dt><dd id="{partner}-{field}" data-live>{number:,}</dd></div>'
        for label, field, number in (
            ("requests", "requests", total.requests),
            ("effects", "effects", total.effects),
            ("hit by faults", "hits", total.hit),
        )
    )
    return (
        f'<section class="card {state.tone}" id="{partner}" data-live-class '
        f'aria-labelledby="{partner}-name"><div class="head">'
        f'<h2 id="{partner}-name">{name}</h2>'
        f'<p id="{partner}-state" class="badge {state.tone}" data-live>{state.word}</p></div>'
        f'<p id="{partner}-now" class="now" data-live>{_now(partner, state)}</p>'
        f'<div class="recent"><div id="{partner}-bars" data-live>{_bars(traffic.bars())}'
        f'<p class="note">last {BARS * SPAN // 60} minutes</p></div>'
        f"<dl>{figures}</dl></div>"
        f"{_buttons(partner, name, active_preset(partner, faults))}</section>"
    )


def _now(partner: str, state: PartnerState) -> str:
    fault = state.fault
    if fault is None:
        return f"{DUTIES[partner]} Answers every request."
    scope = describe_scope(fault)
    everyone = " This fault affects all partners: use Heal all." if fault.partner == "*" else ""
    words = describe_effect(fault)
    return (
        f"{words[0].upper()}{escape(words[1:])}{f' ({escape(scope)})' if scope else ''}, "
        f"<b>for {duration(time.time() - fault.since)}</b>. "
        f"{count(fault.fired, 'request')} hit.{everyone}"
    )


def _bars(bars: list[Bar]) -> str:
    """Draw the requests of each span, those that met a fault on top."""
    tallest = max(4, *(bar.requests for bar in bars))
    drawn = []
    for index, bar in enumerate(bars):
        high = round(bar.requests / tallest * CHART_HEIGHT, 1)
        hit = round(bar.hit / tallest * CHART_HEIGHT, 1)
        for kind, top, height in (
            ("ok", CHART_HEIGHT - high + hit, high - hit),
            ("hit", CHART_HEIGHT - high, hit),
        ):
            if height > 0:
                box = f'x="{index * 6}" y="{top:.1f}" width="5" height="{height:.1f}"'
                drawn.append(f'<rect class="{kind}" {box}/>')
    line = f'<rect class="floor" x="0" y="{CHART_HEIGHT}" width="{BARS * 6 - 1}" height="1"/>'
    return (
        f'<svg viewBox="0 0 {BARS * 6 - 1} {CHART_HEIGHT + 1}" preserveAspectRatio="none" '
        f'aria-hidden="true">{"".join(drawn)}{line}</svg>'
    )


def _buttons(partner: str, name: str, on: str | None) -> str:
    def button(value: str, label: str) -> str:
        current = ' aria-current="true"' if value == on else ""
        return (
            f'<button id="{partner}-{value}" name="preset" value="{value}"{current} '
            f"data-live-class>{label}</button>"
        )

    limits = "".join(f'<option value="{value}">{text}</option>' for value, text in LIMITS.items())
    presets = "".join(button(value, preset.label) for value, preset in PRESETS.items())
    return (
        '<form method="post" action="/faults/break">'
        f'<input type="hidden" name="partner" value="{partner}">'
        f'<div class="ends"><label for="{partner}-times">Break it</label>'
        f'<select id="{partner}-times" name="times" autocomplete="off">{limits}</select>'
        f'<button id="{partner}-heal" class="heal" formaction="/faults/heal">Heal'
        f'<span class="hide"> {name}</span></button></div>'
        f'<fieldset><legend class="hide">Break {name}</legend>{presets}</fieldset></form>'
    )


def _faults(faults: list[Fault]) -> str:
    rows = [
        f'<li id="fault-{fault.ref}"><span><b>{_partner_name(fault)}:</b> {escape(describe_effect(fault))}'
        f'<span id="fault-{fault.ref}-when" class="note" data-live>'
        f"{escape(describe_scope(fault))}</span></span>"
        f'<span id="fault-{fault.ref}-hit" class="num" data-live>'
        f"hit {count(fault.fired, 'time')}</span>"
        f'<span id="fault-{fault.ref}-age" class="num" data-live>'
        f"{duration(time.time() - fault.since)}</span>"
        '<form method="post" action="/faults/remove">'
        f'<button id="remove-{fault.ref}" name="id" value="{fault.ref}">Remove'
        f'<span class="hide"> the fault {fault.ref} of {_partner_name(fault)}</span></button></form></li>'
        for fault in faults
    ]
    none = '<li id="fault-none" class="none">No faults. Every partner answers every request.</li>'
    return (
        '<section><h2 id="faults" tabindex="-1">Faults</h2>'
        f'<ul id="fault-list" class="rows" data-live-list>{"".join(rows) or none}</ul></section>'
    )


def _partner_name(fault: Fault) -> str:
    return "All partners" if fault.partner == "*" else SHOWN.get(fault.partner, fault.partner)


def _latest(ledger: Ledger) -> str:
    rows = [
        _effect(entry)
        for entry in ledger.select(SHOWN_ENTRIES, ledger.last_seq - LATEST * 3, LATEST)
    ]
    rows += [
        f'<tr id="gap-{n}"><td colspan="5">&nbsp;</td></tr>' for n in range(LATEST - len(rows))
    ]
    head = "".join(
        f'<th scope="col"{" class=num" if name == "Requests" else ""}>{name}</th>'
        for name in ("Time (UTC)", "Partner", "Effect", "Order", "Requests")
    )
    return (
        '<section><h2 id="latest">Latest effects</h2>'
        '<div class="scroll" role="region" aria-labelledby="latest" tabindex="0">'
        f'<table><thead><tr>{head}</tr></thead><tbody id="effects" data-live-list>'
        f"{''.join(rows)}</tbody></table></div></section>"
    )


def _effect(entry: Entry) -> str:
    effect = entry.effect
    if entry.rejected:
        effect = f"refused: {entry.detail['code']}"
    elif effect == NO_EFFECT:
        effect = f"{entry.action}: nothing to do"
    if entry.amount is not None and not entry.rejected:
        effect += f" {money(entry.amount, entry.currency or '')}"
    order = entry.order or ""
    short = f'<abbr title="{escape(order)}">{escape(order[:8])}</abbr>' if order else "&ndash;"
    times = f"{entry.requests}&times;"
    return (
        f'<tr id="e{entry.seq}"><td>{clock(entry.at)}</td><td>{entry.partner}</td>'
        f"<td>{escape(effect)}</td><td>{short}</td>"
        f'<td id="e{entry.seq}-requests" class="num" data-live>{times}</td></tr>'
    )


def _test_cards() -> str:
    rows = "".join(
        f"<div><dt><code>{card.method}</code></dt><dd>{card.meaning}</dd></div>"
        for card in CARDS.values()
    )
    return (
        '<section><h2>Test cards</h2><p class="note">Payment methods with a fixed outcome, '
        "which need no fault in force.</p>"
        f'<dl class="list">{rows}</dl></section>'
    )


def _paths(script: FaultScript, host: str) -> str:
    rows = "".join(
        f"<div><dt><code>{method} {path}</code></dt><dd>{partner}: {action}, "
        f"{script.latency[partner] * 1000:g} ms</dd></div>"
        for (method, path), (partner, action) in PATHS.items()
    )
    example = (
        f"curl -X PUT http://{host}/faults \\\n"
        '  -d \'{"faults": [{"partner": "payment", "action": "capture",\n'
        '                   "fault": "timeout_after_effect", "times": 2}]}\''
    )
    return (
        "<section><h2>API</h2><details><summary>Faults by script</summary>"
        "<p>A script can also select the action, the order, and the number of requests.</p>"
        f'<pre tabindex="0" aria-label="An example">{escape(example)}</pre></details>'
        "<details><summary>Paths of the partners</summary>"
        f'<dl class="list">{rows}<div><dt><code>GET /keys/*</code></dt>'
        "<dd>the outcome of an idempotency key</dd></div><div><dt><code>GET /inventory/levels</code></dt>"
        "<dd>on hand and reserved, by SKU and warehouse</dd></div></dl></details></section>"
    )
