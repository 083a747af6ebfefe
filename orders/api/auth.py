"""Authentication by token, scopes and rate limits of the API."""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from ninja.security import HttpBearer

from orchestration.api import Caller, authenticate
from orders.rate_limit import Limit, Usage

from . import problems
from .problems import Problem

MINUTE = 60
UNKNOWN_TOKENS = Limit("api-stranger", most=60, seconds=MINUTE)  # wrong tokens from one address
COUNTED = "orders.api.counted"


class Token(HttpBearer):
    """Requires an application's token with `scope`, or any token."""

    def __init__(self, scope: str) -> None:
        super().__init__()
        self.scope = scope

    def authenticate(self, request: HttpRequest, token: str) -> Caller:
        """Return the caller; raise `Problem` without a valid token."""
        application = authenticate(token)
        if application is None:
            if not UNKNOWN_TOKENS.allows_address(request):
                raise rate_limited(
                    Usage(limit=UNKNOWN_TOKENS.most, used=UNKNOWN_TOKENS.most, left=MINUTE)
                )
            raise problems.not_signed_in("The token is unknown, revoked or expired.")
        counted = Limit("api", most=application.rate, seconds=MINUTE).count(str(application.id))
        request.META[COUNTED] = counted
        if not counted.within:
            raise rate_limited(counted)
        if self.scope and self.scope not in application.scopes:
            raise Problem(
                status=HTTPStatus.FORBIDDEN,
                code="scope_missing",
                detail=f"The token lacks the scope {self.scope}.",
            )
        return application


def caller(request: HttpRequest) -> Caller:
    """Return the authenticated caller."""
    application: Caller = request.auth  # type: ignore[attr-defined] # django-ninja puts it there
    return application


def check_priority(priority: int, who: Caller) -> None:
    """Raise `Problem` if the priority is above the application's limit."""
    if priority > who.max_priority:
        allowed = f"The highest priority allowed for your application is {who.max_priority}."
        raise problems.invalid([problems.FieldError(field="priority", message=allowed)])


def rate_limited(counted: Usage) -> Problem:
    """Return the problem of too many requests."""
    return Problem(
        status=HTTPStatus.TOO_MANY_REQUESTS,
        code="too_often",
        detail=f"The limit is {counted.limit} requests a minute.",
        headers={"Retry-After": str(counted.left)},
    )


def add_rate_headers(request: HttpRequest, response: HttpResponse) -> None:
    """Set the RateLimit headers of a response."""
    counted: Usage | None = request.META.get(COUNTED)
    if counted:
        response["RateLimit-Limit"] = str(counted.limit)
        response["RateLimit-Remaining"] = str(max(0, counted.limit - counted.used))
        response["RateLimit-Reset"] = str(counted.left)
