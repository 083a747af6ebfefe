"""The page of the customers' bank: it asks for a payment to be confirmed, or shows what to transfer."""

from html import escape
from urllib.parse import urlsplit

from aiohttp.web import Response

from sandbox.intents import ASKS, CANCELED, REFUSED, RETURN, Intent
from sandbox.site.layout import POLICY, back_to, document, money

ACTS = {"confirm": "Confirm the payment", "refuse": "Refuse it"}
OF_TRANSFER = {"confirm": "Send the transfer"}
ENDED = {CANCELED: "It was cancelled.", REFUSED: "It was refused."}


def bank_page(intent: Intent, *, status: int = 200) -> Response:
    """Return the page of a payment; without buttons once it is decided."""
    amount = money(intent.amount, intent.currency)
    if intent.status != ASKS:
        body = f"<p>{ENDED.get(intent.status, 'It was confirmed.')}</p>{_way_back(intent)}"
    elif intent.by_transfer:
        rows = {
            "To": "Kettlewell",
            "IBAN": intent.iban,
            "Reference": intent.ref[-8:].upper(),
            "Amount": amount,
        }
        facts = "".join(
            f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in rows.items()
        )
        body = f'<dl class="list">{facts}</dl>{_form(intent, OF_TRANSFER)}'
    else:
        body = (
            f"<p>Kettlewell asks for <b>{amount}</b>.</p>{_form(intent, ACTS)}{_way_back(intent)}"
        )
    title = "Transfer" if intent.by_transfer else "Confirm a payment"
    page = document(
        f"{title} · Sandbox bank",
        f'<div class="top"><div><h1>{title}</h1><p class="lead">The bank of the sandbox.</p></div></div>'
        f'<section class="card good">{body}</section>',
        at="/bank/",
        status=status,
        live=False,  # its form leads to another site
    )
    page.headers["Content-Security-Policy"] = _policy(intent)
    return page


def back_to_shop(intent: Intent) -> Response:
    """Return the redirect to the shop; to the payment's page if the shop named no address."""
    answer = back_to(intent.pages.get(RETURN) or f"/bank/{intent.ref}")
    answer.headers["Content-Security-Policy"] = _policy(intent)
    return answer


def _form(intent: Intent, acts: dict[str, str]) -> str:
    buttons = "".join(
        f'<button name="act" value="{value}">{label}</button> ' for value, label in acts.items()
    )
    return f'<form method="post" action="/bank/{escape(intent.ref)}"><p>{buttons}</p></form>'


def _way_back(intent: Intent) -> str:
    address = intent.pages.get(RETURN, "")
    return f'<p><a href="{escape(address)}">Back to the shop</a></p>' if address else ""


def _policy(intent: Intent) -> str:
    """Return the policy of a page whose form leads back to the shop."""
    shop = urlsplit(intent.pages.get(RETURN, ""))
    origin = f" {shop.scheme}://{shop.netloc}" if shop.netloc else ""
    return POLICY.replace("form-action 'self'", f"form-action 'self'{origin}")
