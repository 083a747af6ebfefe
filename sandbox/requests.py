"""From an HTTP request to a call: the route, the body, the key and the authorization."""

import json
from hashlib import blake2b
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from aiohttp.web import BaseRequest

from sandbox.ledger import Ledger
from sandbox.partner import CARRIERS, DOES, Call
from sandbox.refusals import PAYMENT, Refusal, key_missing

canonical = json.JSONEncoder(sort_keys=True).encode
KEY_LENGTH = 255  # characters, as Stripe allows


class Route(NamedTuple):
    """The partner and the action of a method and path; `ref` is the id in the path."""

    partner: str
    action: str
    ref: str | None = None


# Paths of partners' actions; * stands for an object's id.
PATHS: dict[tuple[str, str], tuple[str, str]] = {
    ("POST", "/inventory/reservations"): ("inventory", "reserve"),
    ("POST", "/inventory/reservations/*/release"): ("inventory", "release"),
    ("POST", "/inventory/reservations/*/parts"): ("inventory", "release_part"),
    ("GET", "/inventory/reservations/*"): ("inventory", "read"),
    ("POST", "/inventory/returns"): ("inventory", "restock"),
    ("POST", "/inventory/adjustments"): ("inventory", "adjust"),
    ("POST", "/v1/customers"): ("payment", "customer"),
    ("POST", "/v1/payment_intents"): ("payment", "authorize"),
    ("POST", "/v1/payment_intents/*/capture"): ("payment", "capture"),
    ("POST", "/v1/payment_intents/*/cancel"): ("payment", "cancel"),
    ("GET", "/v1/payment_intents/*"): ("payment", "read"),
    ("POST", "/v1/refunds"): ("payment", "refund"),
    **{("POST", f"/{carrier}/shipments"): (carrier, "book") for carrier in CARRIERS},
    **{("POST", f"/{carrier}/shipments/*/cancel"): (carrier, "cancel") for carrier in CARRIERS},
    **{("GET", f"/{carrier}/shipments/*"): (carrier, "read") for carrier in CARRIERS},
    ("POST", "/shipping/labels"): ("shipping", "label"),
    ("POST", "/shipping/labels/*/void"): ("shipping", "void"),
    ("POST", "/mail/messages"): ("mail", "send"),
    ("POST", "/bench/calls"): ("bench", "call"),
    **{("POST", f"/{partner}/undo"): (partner, "undo") for partner in DOES},
}
ROUTES = {path: Route(*named) for path, named in PATHS.items()}


def split_target(raw: str) -> tuple[str, dict[str, str]]:
    """Return path and query of a request target; the last of repeated names in the query counts."""
    path, _, query = raw.partition("?")
    return path, dict(parse_qsl(query, keep_blank_values=True)) if query else {}


def find_route(method: str, path: str) -> Route | None:
    """Return the route of a partner's path, or None for other paths."""
    route = ROUTES.get((method, path))
    if route is not None:
        return route
    parts = path.split("/")
    if len(parts) < 4:
        return None
    ref, parts[3] = unquote(parts[3]), "*"
    named = PATHS.get((method, "/".join(parts)))
    return named and Route(*named, ref)


def methods_of(path: str) -> list[str]:
    """Return the methods of a partner's path, none for other paths."""
    return [method for method in ("GET", "POST") if find_route(method, path)]


def authorize(request: BaseRequest, partner: str) -> None:
    """Require a test key from requests to the payment partner; raises a 401 Refusal."""
    if partner != PAYMENT:
        return
    kind, _, secret = request.headers.get("Authorization", "").partition(" ")
    if kind != "Bearer" or not secret.startswith("sk_test_"):
        raise Refusal(
            401,
            "api_key_invalid",
            "You did not provide a valid API key. Send it as 'Authorization: Bearer sk_test_…'; "
            "the sandbox accepts any key that begins with sk_test_.",
        )


async def read_call(request: BaseRequest, route: Route, ledger: Ledger) -> Call:
    """Parse a do or undo request; raises a 400 Refusal."""
    authorize(request, route.partner)
    body = await request.read()
    key = request.headers.get("Idempotency-Key", "")
    if not key:
        raise key_missing()
    if len(key) > KEY_LENGTH:
        raise Refusal(
            400,
            "idempotency_key_too_long",
            f"The Idempotency-Key has {len(key)} characters; at most {KEY_LENGTH} are allowed.",
        )
    params = parse_body(request, route, body)
    ref = route.ref
    if route.action == "refund":
        ref = params.get("payment_intent")
    order = _order(route, params) or ledger.order_of(route.partner, ref, _target(route, params))
    payload = f"{route.partner} {route.action} {ref} " + canonical(params)
    fingerprint = blake2b(payload.encode(), digest_size=8).hexdigest()
    return Call(route.partner, route.action, key, order, ref, params, fingerprint)


def parse_body(request: BaseRequest, route: Route, body: bytes) -> dict[str, Any]:
    """Return the fields of a form (payment) or of a JSON object; raises a 400 Refusal.

    An empty body has no fields. The payment partner accepts JSON only for the undo by key, which
    Stripe does not have.
    """
    if not body:
        return {}
    if route.partner == PAYMENT and not (route.action == "undo" and body.lstrip()[:1] == b"{"):
        if "json" in request.headers.get("Content-Type", ""):
            message = "The payment partner takes forms, not JSON: send key=value&key=value."
            raise Refusal(400, "bad_request", message)
        return dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))
    params = parse_json(body)
    if not isinstance(params, dict):
        raise Refusal(400, "bad_request", "The body must be a JSON object, with fields by name.")
    return params


def parse_json(body: bytes) -> Any:
    """Parse a JSON body; raises a 400 Refusal with the position of the error."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, "bad_json", f"The body is not valid JSON: {error}.") from error


def _order(route: Route, params: dict[str, Any]) -> str | None:
    order = params.get("metadata[order]" if route.partner == PAYMENT else "order")
    return order if isinstance(order, str) and order else None


def _target(route: Route, params: dict[str, Any]) -> str | None:
    target = params.get("key") if route.action == "undo" else None
    return target if isinstance(target, str) else None
