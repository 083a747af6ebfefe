"""Errors of the API: problem details (RFC 9457) with a code and what to do."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from orchestration.api import is_busy, is_unavailable

from .sentences import sentence

logger = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = 30  # seconds, while the database is away

WHAT_TO_DO = {  # by code
    "bad_request": "Send the request to a host name from the documentation.",
    "malformed_json": "Send a JSON object in UTF-8.",
    "key_missing": "Send Idempotency-Key: 1 to 200 visible ASCII characters, new for each order and "
    "the same for a repeat. A UUID works well.",
    "not_signed_in": "Send “Authorization: Bearer …” with a token that is neither revoked nor "
    "expired. Staff create tokens in the admin.",
    "scope_missing": "Ask for a token with that scope.",
    "not_found": "Compare the address with the OpenAPI document at /api/openapi.json. An order of "
    "another application is not found either.",
    "method_not_allowed": "Use one of the methods in Allow.",
    "cannot_be_cancelled": "The order can no longer be cancelled. Contact the shop's staff.",
    "cannot_be_readdressed": "Leave the address, or contact the shop's staff. Within another country, cancel "
    "the order and place a new one.",
    "not_removable": "Read the order: `lines` is what it has. Once its parcel is booked, have it sent back.",
    "nothing_left": "Cancel the order instead.",
    "not_returnable": "Only completed orders can be sent back, and only for some weeks.",
    "not_claimable": "Claim a parcel of a completed order, by its tracking number, some days "
    "after it was sent. It cannot be claimed if something of the order comes back.",
    "too_many_units": "Send at most the units in left.",
    "too_dear": "Wish for goods that cost no more than worth, or leave out exchange_for.",
    "not_exchangeable": "Leave out exchange_for.",
    "not_taken_yet": "Retry after the number of seconds in Retry-After.",
    "price_changed": "Check the lines in the answer. To accept the new total, send it as "
    "expected_total with a new key.",
    "no_gift_card": "Leave out gift_card, or ask the customer for the code in the letter.",
    "no_discount": "Leave out discount_code, or ask the customer for another code.",
    "taken_by_a_consumer": "A consumer process takes these messages; they cannot be fetched.",
    "too_large": "Send at most 256 KiB.",
    "not_json": "Send the body as JSON with “Content-Type: application/json”.",
    "invalid": "Correct what is named in errors, and send the request again.",
    "key_used": "Use a new key for another order. The order placed with this key is unchanged.",
    "too_much": "Place several orders, each below this total.",
    "not_sold": "Remove the lines named in errors, and send the request again with a new key.",
    "too_often": "Wait for the number of seconds in Retry-After.",
    "failed": "The error is not in your request. Send the same request again later.",
    "database_away": "Send the same request again after the number of seconds in Retry-After. An order with "
    "the same Idempotency-Key is placed once.",
}


@dataclass(frozen=True, kw_only=True)
class FieldError:
    """An error of one field of a request; `field` is its path, as in "lines.0.sku"."""

    field: str
    message: str


@dataclass(kw_only=True)
class Problem(Exception):
    """An error response."""

    status: HTTPStatus
    code: str
    detail: str
    errors: Sequence[FieldError] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def answer(self) -> HttpResponse:
        """Return the response."""
        body = {
            "type": f"urn:problem:{self.code}",
            "title": self.status.phrase,
            "status": self.status.value,
            "code": self.code,
            "detail": self.detail,
            "what_to_do": WHAT_TO_DO[self.code],
            "errors": [vars(error) for error in self.errors],
            **self.extra,
        }
        return JsonResponse(
            body, status=self.status, content_type=MEDIA_TYPE, headers=dict(self.headers)
        )


def not_found(what: str = "Unknown address.") -> Problem:
    """Return the problem for what is unknown, or belongs to another application."""
    return Problem(status=HTTPStatus.NOT_FOUND, code="not_found", detail=what)


def not_signed_in(detail: str) -> Problem:
    """Return the problem of a request without a valid token."""
    return Problem(
        status=HTTPStatus.UNAUTHORIZED,
        code="not_signed_in",
        detail=detail,
        headers={"WWW-Authenticate": 'Bearer realm="api"'},
    )


def invalid(errors: Sequence[FieldError], code: str = "invalid") -> Problem:
    """Return the problem of a request with invalid fields."""
    first = f"{errors[0].field}: {errors[0].message}" if errors else "The request is invalid."
    return Problem(status=HTTPStatus.UNPROCESSABLE_ENTITY, code=code, detail=first, errors=errors)


def conflict(code: str, detail: str, **extra: Any) -> Problem:
    """Return the problem of a request that conflicts with the current state."""
    return Problem(status=HTTPStatus.CONFLICT, code=code, detail=detail, extra=extra)


def only(request: HttpRequest, *known: str) -> None:
    """Raise `Problem` for unknown query parameters, which are probably misspelt."""
    if unknown := sorted(request.GET.keys() - set(known)):
        raise invalid([FieldError(field=name, message="Unknown parameter.") for name in unknown])


def may_pass(error: Exception) -> bool:
    """Return whether the same request may succeed a little later; its transaction was rolled back.

    A statement timeout is not among these: the statement would time out again. It is logged with a
    traceback, as other failures are.
    """
    return is_unavailable(error) or is_busy(error)


def handle(api: NinjaAPI) -> None:
    """Answer each exception of the API with a problem."""

    def as_it_says(_request: HttpRequest, problem: Any) -> HttpResponse:
        return _of(problem).answer()

    def failed(request: HttpRequest, error: Any) -> HttpResponse:
        if may_pass(error):
            return away(request, error)
        logger.error("%s %s failed", request.method, request.path, exc_info=error)
        return Problem(
            status=HTTPStatus.INTERNAL_SERVER_ERROR, code="failed", detail="Internal error."
        ).answer()

    def away(request: HttpRequest, error: Any) -> HttpResponse:
        logger.error("%s %s: the database is away: %s", request.method, request.path, error)
        connection.close()
        return Problem(
            status=HTTPStatus.SERVICE_UNAVAILABLE,
            code="database_away",
            detail="The database is unavailable: the request may have been carried out or not.",
            headers={"Retry-After": str(RETRY_AFTER)},
        ).answer()

    expected: tuple[type[Exception], ...] = (
        Problem,
        AuthenticationError,
        ValidationError,
        HttpError,
    )
    for kind in expected:
        api.add_exception_handler(kind, as_it_says)
    api.add_exception_handler(Exception, failed)


def _of(error: Exception) -> Problem:
    """Return the problem for an exception of django-ninja."""
    match error:
        case Problem():
            return error
        case AuthenticationError():
            return not_signed_in("The request has no token.")
        case ValidationError():
            return _invalid(error.errors)
    return Problem(
        status=HTTPStatus.BAD_REQUEST, code="malformed_json", detail="The body is not JSON."
    )


def _invalid(errors: Sequence[Mapping[str, Any]]) -> Problem:
    if any(error["loc"][0] == "header" for error in errors):
        return Problem(
            status=HTTPStatus.BAD_REQUEST,
            code="key_missing",
            detail="The header Idempotency-Key is missing or invalid.",
        )
    return invalid(
        [FieldError(field=_path(error["loc"]), message=sentence(error)) for error in errors]
    )


def _path(place: Sequence[Any]) -> str:
    """Return the path of a field, without the names of view parameters."""
    beyond = place[2:] if place[0] == "body" else place[1:]
    return ".".join(map(str, beyond)) or "body"
