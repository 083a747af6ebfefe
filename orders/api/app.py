"""The API: routes, the OpenAPI document, and what applies to every response."""

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any, cast

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, path, re_path
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from . import claims, orders, problems, products, returns, schemas, status_messages
from .auth import Token, add_rate_headers
from .problems import MEDIA_TYPE, Problem
from .reference import Reference
from .scopes import READ_ORDERS, READ_STATUS, WRITE_ORDERS

View = Callable[..., HttpResponseBase]

DESCRIPTION = f"""
Read the catalogue, place orders for your customers and follow them.

- **Tokens.** Each request needs a token of your application: `Authorization: Bearer …`. A token has
  scopes: `{WRITE_ORDERS}`, `{READ_ORDERS}`, `{READ_STATUS}`.
- **Idempotency.** Repeat a request with the same `Idempotency-Key` if its result is unknown: the order
  is placed once.
- **Status messages.** Fetch them, or receive them as signed webhooks, instead of polling orders.
- **Problems** are JSON by RFC 9457, with a `code` for programs and a sentence on what to do.
- **Rate limits.** Each response has `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`.
"""

PROBLEMS = {  # that an operation may return
    400: "Malformed", 401: "No valid token", 403: "The token lacks the scope",
    404: "Unknown, or of another application", 409: "Conflicts with the current state",
    413: "Too large", 415: "Not JSON", 422: "Invalid", 429: "Too many requests",
    500: "Internal error", 503: "Unavailable for a moment",
}  # fmt: skip
RATE_HEADERS = {
    "RateLimit-Limit": "Requests a minute.",
    "RateLimit-Remaining": "Requests left.",
    "RateLimit-Reset": "Seconds until the count is reset.",
}


class OrdersAPI(NinjaAPI):
    """The API, with an OpenAPI document that has problems, headers and scopes."""

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        """Return the OpenAPI document."""
        document = super().get_openapi_schema(**options)
        # no operation returns a Problem itself, so its schema is added here
        schema = schemas.Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        document["components"]["schemas"] |= schema.pop("$defs") | {"Problem": schema}
        for address, operations in document["paths"].items():
            for method, operation in operations.items():
                _complete(operation, has_body=method == "post", has_id=_names_an_order(address))
        return document


def _names_an_order(address: str) -> bool:
    """Return whether an operation is about one thing, which may be unknown: by its address or a field."""
    return "{" in address or address.endswith(("/returns", "/claims"))


def _complete(operation: dict[str, Any], *, has_body: bool, has_id: bool) -> None:
    integer = {"schema": {"type": "integer"}}
    rates = {name: {"description": what, **integer} for name, what in RATE_HEADERS.items()}
    for answer in operation["responses"].values():
        answer["headers"] = rates
    for parameter in operation["parameters"]:
        parameter.pop("examples", None)  # the schema has them; here they would need names
    missing = set() if has_body else {400, 413, 415}
    missing |= set() if has_id else {404}
    for status, what in PROBLEMS.items():
        if status not in missing:
            content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
            operation["responses"][status] = {"description": what, "content": content}
    for security in operation["security"]:
        if scope := SCOPES[operation["operationId"]]:
            security["Token"] = [scope]
            operation["description"] += f"\n\nScope: `{scope}`."


api = OrdersAPI(
    title="Kettlewell orders",
    version="1",
    description=DESCRIPTION,
    urls_namespace="api",
    docs=Reference(),
    openapi_extra={"servers": [{"url": "/", "description": "This installation"}]},
)
ROUTERS = {
    "/products": products.router,
    "/orders": orders.router,
    "/returns": returns.router,
    "/claims": claims.router,
    "/status-messages": status_messages.router,
}
for prefix, router in ROUTERS.items():
    api.add_router(prefix, router)
problems.handle(api)
SCOPES = {
    operation.operation_id: callback.scope
    for router in ROUTERS.values()
    for view in router.path_operations.values()
    for operation in view.operations
    for callback in operation.auth_callbacks
    if isinstance(callback, Token)
}


def _guarded(view: View) -> View:
    """Answer with a problem where django-ninja does not; add headers to each response."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        problem = _unreadable(request)
        response = problem.answer() if problem else view(request, *args, **kwargs)
        if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            response = Problem(
                status=HTTPStatus.METHOD_NOT_ALLOWED,
                code="method_not_allowed",
                detail=f"{request.method} is not allowed here.",
                headers={"Allow": response["Allow"]},
            ).answer()
        if isinstance(response, HttpResponse):
            add_rate_headers(request, response)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return guarded


def _unreadable(request: HttpRequest) -> Problem | None:
    """Return the problem of a body that is too large or not JSON."""
    try:
        sent = bool(request.body)
    except RequestDataTooBig:
        return Problem(
            status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            code="too_large",
            detail="The body is too large.",
        )
    if sent and request.content_type != "application/json":
        return Problem(
            status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            code="not_json",
            detail=f"The body is {request.content_type or 'of no type'}, not application/json.",
        )
    return None


@csrf_exempt
def _not_found(_request: HttpRequest) -> HttpResponse:
    return problems.not_found().answer()


@csrf_exempt
def _root(request: HttpRequest) -> HttpResponse:
    """Lead readers to the reference."""
    return redirect("api:openapi-view") if request.method == "GET" else _not_found(request)


def _urls() -> tuple[list[URLPattern], str, str]:
    patterns, application, namespace = api.urls
    own = [
        route for route in patterns if isinstance(route, URLPattern) and route.name != "api-root"
    ]
    for route in own:
        route.callback = _guarded(cast("View", route.callback))
    unknown = re_path("", _not_found)  # every other address
    return [*own, path("", _root, name="api-root"), unknown], application, namespace


urls = _urls()
