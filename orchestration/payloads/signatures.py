"""Signatures of webhooks, outgoing and incoming: HMAC-SHA256 over a time and the body."""

import base64
import binascii
import hashlib
import hmac

PREFIX = "whsec_"  # of a secret of Standard Webhooks, whose key is what follows, in base64
VERSION = "v1,"  # begins each of its signatures


def standard(secret: str, message: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a message by the Standard Webhooks specification.

    `message` is its id, `timestamp` its time in whole seconds of Unix time.
    """
    signed = f"{message}.{timestamp}.".encode() + body
    digest = hmac.digest(_key(secret), signed, hashlib.sha256)
    return VERSION + base64.b64encode(digest).decode()


def stripe(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a message as Stripe makes it, whose key is the whole text of the secret."""
    return hmac.digest(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hex()


def _key(secret: str) -> bytes:
    if secret.startswith(PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        except binascii.Error:
            pass  # it only looks like one
    return secret.encode()
