"""The sandbox's one page: partners, faults in force, where to look."""

from collections import Counter
from html import escape

from sandbox.intake import PATHS
from sandbox.ledger import Ledger
from sandbox.partner import DOES
from sandbox.script import Script


def page(ledger: Ledger, script: Script) -> str:
    """Return the page as HTML."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<title>Partners' sandbox</title></head><body><main><h1>Partners' sandbox</h1>"
        "<p>The remote partners that orders depend on, with a ledger of what they did.</p>"
        f"{_partners(ledger, script)}{_faults(script)}"
        f"{_paths()}"
        '<h2>Look further</h2><ul><li><a href="/ledger">Ledger</a>: every effect, '
        f"{len(ledger.entries)} so far</li>"
        '<li><a href="/ledger/summary">Totals per order</a></li>'
        '<li><a href="/inventory/stock">Stock</a></li>'
        '<li><a href="/mail/messages">Mail sent</a></li>'
        '<li><a href="/faults">Fault script</a></li></ul></main></body></html>\n'
    )


def _partners(ledger: Ledger, script: Script) -> str:
    counts = Counter(entry.partner for entry in ledger.entries)
    rows = [
        [partner, ", ".join(does), str(counts[partner]), f"{script.latency[partner] * 1000:g} ms"]
        for partner, does in DOES.items()
    ]
    return "<h2>Partners</h2>" + _table(["Partner", "Does", "Entries", "Latency"], rows)


def _paths() -> str:
    rows = [
        [f"{method} {path}", partner, action] for (method, path), (partner, action) in PATHS.items()
    ]
    rows.append(["GET /keys/*", "all", "tell what an idempotency key made"])
    return "<h2>Paths</h2>" + _table(["Path (* is an id or key)", "Partner", "Action"], rows)


def _faults(script: Script) -> str:
    if not script.faults:
        return "<h2>Faults</h2><p>None: every partner works.</p>"
    rows = [
        [
            fault.kind,
            fault.partner,
            fault.action,
            str(fault.fired),
            "for ever" if fault.times is None else str(fault.times),
            " ".join(f"{name}={value}" for name, value in _details(fault.script()) if value),
        ]
        for fault in script.faults
    ]
    head = ["Fault", "Partner", "Action", "Fired", "Times", "Details"]
    return "<h2>Faults</h2>" + _table(head, rows)


def _details(script: dict[str, object]) -> list[tuple[str, object]]:
    shown = ("fault", "partner", "action", "times")
    return [(name, value) for name, value in script.items() if name not in shown]


def _table(head: list[str], rows: list[list[str]]) -> str:
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
