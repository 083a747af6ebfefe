"""The partners' refusals, in the error format of each partner."""

from typing import Any

PAYMENT = "payment"


class Refusal(Exception):
    """A request that a partner refuses.

    A `stored` refusal is definitive: it gets an entry in the ledger and is replayed for its
    idempotency key. `extra` are further fields of the error object.
    """

    def __init__(
        self, status: int, code: str, message: str, *, stored: bool = False, **extra: Any
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.stored = stored
        self.extra = extra

    def error(self, partner: str | None = None) -> dict[str, Any]:
        """Return the error object: code, message, and for payment also Stripe's `type`."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if partner == PAYMENT:
            error["type"] = "invalid_request_error"
        return error | self.extra


def bad_field(field: str, message: str) -> Refusal:
    """Return the 400 for one wrong field of a request's body."""
    return Refusal(400, "bad_request", message, field=field)


def stripe_error(status: int, code: str, message: str, **extra: Any) -> Refusal:
    """Return a definitive refusal of the payment partner (`invalid_request_error` by default)."""
    return Refusal(status, code, message, stored=True, **extra)


def key_missing() -> Refusal:
    """Return the 400 for a do or an undo without an idempotency key."""
    return Refusal(
        400,
        "idempotency_key_missing",
        "The Idempotency-Key header is missing or empty. Every do and undo needs one, so that it "
        "can be repeated safely: send the same key with each attempt of the same step.",
    )


def key_reused(partner: str, key: str) -> Refusal:
    """Return the refusal of a key that was first used with another payload."""
    message = (
        "Keys for idempotent requests can only be used with the same parameters they were first "
        f"used with. Try using a key other than '{key}' if you meant to execute a different "
        "request."
    )
    if partner == PAYMENT:
        return Refusal(400, "idempotency_key_reused", message, type="idempotency_error")
    return Refusal(409, "key_reused", message)


def key_in_use(partner: str, key: str) -> Refusal:
    """Return the refusal of a key whose first request is still being processed."""
    message = (
        f"There is currently another in-progress request using the idempotency key '{key}'. "
        "Wait a moment and repeat the request with the same key."
    )
    if partner == PAYMENT:
        return Refusal(409, "idempotency_key_in_use", message, type="idempotency_error")
    return Refusal(409, "key_in_use", message)


def already_undone(key: str) -> Refusal:
    """Return the refusal of a do whose undo came first, or whose object has been undone."""
    return Refusal(
        409,
        "already_undone",
        f"The effect of the key '{key}' has been undone and is not repeated. "
        "Use a new key to do it again.",
    )


def declined(decline_code: str, message: str) -> Refusal:
    """Return Stripe's refusal of a card, for example `generic_decline`."""
    return Refusal(
        402,
        "card_declined",
        message,
        stored=True,
        type="card_error",
        decline_code=decline_code,
    )
