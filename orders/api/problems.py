"""What goes wrong, told to programs: problem details (RFC 9457) with a code and what to do."""

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

logger = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = 30  # seconds, while the database is away

WHAT_TO_DO = {  # by code
    "bad_request": "Send the request to one of our own host names, as our documentation writes them.",
    "malformed_json": "Send a JSON object in UTF-8.",
    "key_missing": "Send Idempotency-Key: 1 to 200 visible ASCII characters, new for each order and "
    "the same when you send it again. A UUID is good.",
    "not_signed_in": "Send “Authorization: Bearer …” with a token that is neither revoked nor "
    "expired. Tokens are made in our admin.",
    "scope_missing": "Ask for a token with that scope.",
    "not_found": "Compare the address with the OpenAPI document at /api/openapi.json. An order of "
    "another application is not found either.",
    "method_not_allowed": "Use one of the methods in Allow.",
    "cannot_be_cancelled": "It is too late for that. Settle it with the customer or our staff.",
    "not_taken_yet": "Try again after the seconds in Retry-After.",
    "price_changed": "Look at the lines in the answer. If the new total is right, place it again "
    "with it as expected_total, under a new key.",
    "taken_by_a_consumer": "Its messages are taken in our own processes: nobody else can.",
    "too_large": "Send less: a body may have 256 KiB.",
    "not_json": "Send the body as JSON with “Content-Type: application/json”.",
    "invalid": "Mend what is named in errors, and send it again with the same key.",
    "key_used": "Use a new key for another order. The order placed with this key stands.",
    "not_sold": "Take what is named in errors out of the order, and place it again.",
    "too_often": "Wait for the seconds in Retry-After.",
    "failed": "Nothing you can mend. Send the same request again later, with the same key.",
    "database_away": "Send the same request again after the seconds in Retry-After, with the same "
    "Idempotency-Key: the same order is never placed twice.",
}


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """What is wrong with one field of a request; `field` is its path, as in "lines.0.sku"."""

    field: str
    message: str


@dataclass(kw_only=True)
class Problem(Exception):
    """An answer that says what went wrong."""

    status: HTTPStatus
    code: str
    detail: str
    errors: Sequence[Wrong] = ()
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
            "errors": [vars(one) for one in self.errors],
            **self.extra,
        }
        return JsonResponse(
            body, status=self.status, content_type=MEDIA_TYPE, headers=dict(self.headers)
        )


def not_found(what: str = "There is nothing at this address.") -> Problem:
    """Return that there is no such thing, or that it is somebody else's: one answer for both."""
    return Problem(status=HTTPStatus.NOT_FOUND, code="not_found", detail=what)


def not_signed_in(detail: str) -> Problem:
    """Return that the request shows no good token."""
    return Problem(
        status=HTTPStatus.UNAUTHORIZED,
        code="not_signed_in",
        detail=detail,
        headers={"WWW-Authenticate": 'Bearer realm="api"'},
    )


def invalid(errors: Sequence[Wrong], code: str = "invalid") -> Problem:
    """Return that the request was understood, but cannot be."""
    first = f"{errors[0].field}: {errors[0].message}" if errors else "It is not valid."
    return Problem(status=HTTPStatus.UNPROCESSABLE_ENTITY, code=code, detail=first, errors=errors)


def conflict(code: str, detail: str, **extra: Any) -> Problem:
    """Return that things stand otherwise than the request takes for granted."""
    return Problem(status=HTTPStatus.CONFLICT, code=code, detail=detail, extra=extra)


def only(request: HttpRequest, *known: str) -> None:
    """Raise the problem where a query names what we do not know: a typing error, probably."""
    if unknown := sorted(request.GET.keys() - set(known)):
        raise invalid(
            [Wrong(field=name, message="There is no such parameter.") for name in unknown]
        )


def may_pass(error: Exception) -> bool:
    """Return whether the same request may work a little later: what it began was rolled back.

    A statement time-out is not among these: what took half a minute takes it again, until a
    developer has looked at it. It is a failure like any other, with a traceback in the log.
    """
    return is_unavailable(error) or is_busy(error)


def handle(api: NinjaAPI) -> None:
    """Have everything that is raised below the API answered as a problem."""

    def as_it_says(_request: HttpRequest, problem: Any) -> HttpResponse:
        return _of(problem).answer()

    def failed(request: HttpRequest, error: Any) -> HttpResponse:
        if may_pass(error):
            return away(request, error)
        logger.error("%s %s failed", request.method, request.path, exc_info=error)
        return Problem(
            status=HTTPStatus.INTERNAL_SERVER_ERROR, code="failed", detail="We failed at this."
        ).answer()

    def away(request: HttpRequest, error: Any) -> HttpResponse:
        logger.error("%s %s: the database is away: %s", request.method, request.path, error)
        connection.close()
        return Problem(
            status=HTTPStatus.SERVICE_UNAVAILABLE,
            code="database_away",
            detail="We cannot tell at the moment whether this was done.",
            headers={"Retry-After": str(RETRY_AFTER)},
        ).answer()

    said: tuple[type[Exception], ...] = (Problem, AuthenticationError, ValidationError, HttpError)
    for kind in said:
        api.add_exception_handler(kind, as_it_says)
    api.add_exception_handler(Exception, failed)


def _of(error: Exception) -> Problem:
    """Return the problem that an exception of django-ninja stands for."""
    match error:
        case Problem():
            return error
        case AuthenticationError():
            return not_signed_in("The request shows no token.")
        case ValidationError():
            return _invalid(error.errors)
    return Problem(
        status=HTTPStatus.BAD_REQUEST, code="malformed_json", detail="The body is not JSON."
    )


def _invalid(errors: Sequence[Mapping[str, Any]]) -> Problem:
    if any(one["loc"][0] == "header" for one in errors):
        return Problem(
            status=HTTPStatus.BAD_REQUEST,
            code="key_missing",
            detail="The header Idempotency-Key is missing, or is not what it has to be.",
        )
    return invalid(
        [Wrong(field=_path(one["loc"]), message=str(one["msg"])[:300]) for one in errors]
    )


def _path(place: Sequence[Any]) -> str:
    """Return where something is wrong, without the names of our own parameters."""
    beyond = place[2:] if place[0] == "body" else place[1:]
    return ".".join(map(str, beyond)) or "body"
