"""Who may do what through the API: tokens, scopes, and how often."""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from ninja.security import HttpBearer

from orchestration.api import Caller, authenticate
from orders.throttle import Counted, Limit

from . import problems
from .problems import Problem

MINUTE = 60
STRANGERS = Limit("api-stranger", most=60, seconds=MINUTE)  # wrong tokens from one address
COUNTED = "orders.api.counted"


class Token(HttpBearer):
    """The token of an application that is good for `scope`."""

    def __init__(self, scope: str) -> None:
        super().__init__()
        self.scope = scope

    def authenticate(self, request: HttpRequest, token: str) -> Caller:
        """Return who calls; raise the problem otherwise."""
        found = authenticate(token)
        if found is None:
            if not STRANGERS.allows_address(request):
                raise too_often(Counted(limit=STRANGERS.most, used=STRANGERS.most, left=MINUTE))
            raise problems.not_signed_in("The token is unknown, revoked or expired.")
        counted = Limit("api", most=found.rate, seconds=MINUTE).count(str(found.id))
        request.META[COUNTED] = counted
        if not counted.within:
            raise too_often(counted)
        if self.scope not in found.scopes:
            raise Problem(
                status=HTTPStatus.FORBIDDEN,
                code="scope_missing",
                detail=f"The token is not good for {self.scope}.",
            )
        return found


def caller(request: HttpRequest) -> Caller:
    """Return who calls, once that is known."""
    found: Caller = request.auth  # type: ignore[attr-defined] # django-ninja puts it there
    return found


def check_priority(priority: int, who: Caller) -> None:
    """Raise the problem where an application states a priority above what it is allowed."""
    if priority > who.most_priority:
        allowed = f"Your application may state a priority of {who.most_priority} at most."
        raise problems.invalid([problems.Wrong(field="priority", message=allowed)])


def too_often(counted: Counted) -> Problem:
    """Return that somebody has to wait."""
    return Problem(
        status=HTTPStatus.TOO_MANY_REQUESTS,
        code="too_often",
        detail=f"At most {counted.limit} requests a minute are answered.",
        headers={"Retry-After": str(counted.left)},
    )


def tell_rate(request: HttpRequest, response: HttpResponse) -> None:
    """Say how many requests are left, in the headers of whatever is answered."""
    counted: Counted | None = request.META.get(COUNTED)
    if counted:
        response["RateLimit-Limit"] = str(counted.limit)
        response["RateLimit-Remaining"] = str(max(0, counted.limit - counted.used))
        response["RateLimit-Reset"] = str(counted.left)
