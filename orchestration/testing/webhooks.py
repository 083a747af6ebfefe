"""Signed webhooks for tests, as services send them at the run's time."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from ..agents.webhook import Webhook
from ..database import clock
from ..payloads import signatures
from ..payloads.text import as_text

Body = Mapping[str, Any] | bytes  # JSON, or as it is


def standard(body: Body, secret: str, **headers: str) -> Webhook:
    """Return a webhook that is signed by the Standard Webhooks specification."""
    raw, timestamp = _raw(body), str(int(clock.now()))
    message = f"msg_{uuid4().hex}"
    signed = {
        "webhook-id": message,
        "webhook-timestamp": timestamp,
        "webhook-signature": signatures.standard(secret, message, timestamp, raw),
    }
    return Webhook(body=raw, headers={**signed, **headers})


def stripe(body: Body, secret: str, **headers: str) -> Webhook:
    """Return a webhook that is signed as Stripe does."""
    raw, timestamp = _raw(body), str(int(clock.now()))
    signed = f"t={timestamp},v1={signatures.stripe(secret, timestamp, raw)}"
    return Webhook(body=raw, headers={"Stripe-Signature": signed, **headers})


def _raw(body: Body) -> bytes:
    return body if isinstance(body, bytes) else as_text(body).encode()
