"""The API as a whole: its routes, its OpenAPI document, and what holds for every answer."""

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any, cast

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from orders.scopes import READ_ORDERS, READ_STATUS, WRITE_ORDERS

from . import messages, orders, problems, shapes
from .access import Token, tell_rate
from .problems import MEDIA_TYPE, Problem
from .reference import Reference

View = Callable[..., HttpResponseBase]

DESCRIPTION = f"""
Place orders for your customers, and learn what becomes of them.

- **Tokens.** Each request shows a token of your application: `Authorization: Bearer …`. A token is
  good for its scopes: `{WRITE_ORDERS}`, `{READ_ORDERS}`, `{READ_STATUS}`.
- **Placing twice is placing once.** Send the same `Idempotency-Key` again whenever you do not know
  what became of a request.
- **Learn, instead of asking.** Fetch status messages, or have them sent to you as signed webhooks.
- **Problems** are JSON as of RFC 9457, with a `code` for programs and a sentence that says what to do.
- **Rates.** `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` are in each answer.
"""

TOLD = {  # the problems that each operation may answer with
    400: "Malformed", 401: "No good token", 403: "The token lacks the scope",
    404: "There is no such thing, or it is somebody else's", 409: "Things stand otherwise",
    413: "Too large", 415: "Not JSON", 422: "Not valid", 429: "Too often",
    500: "We failed", 503: "We are away for a moment",
}  # fmt: skip
RATE_HEADERS = {
    "RateLimit-Limit": "Requests a minute.",
    "RateLimit-Remaining": "Requests left.",
    "RateLimit-Reset": "Seconds until the count starts anew.",
}


class Site(NinjaAPI):
    """The API; completes the document with what holds for every operation."""

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        """Return the OpenAPI document, with problems, headers and scopes."""
        document = super().get_openapi_schema(**options)
        # of the shape of problems, which no operation returns itself
        schema = shapes.Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        document["components"]["schemas"] |= schema.pop("$defs") | {"Problem": schema}
        for address, operations in document["paths"].items():
            for method, operation in operations.items():
                _complete(operation, has_body=method == "post", has_id="{" in address)
        return document


def _complete(operation: dict[str, Any], *, has_body: bool, has_id: bool) -> None:
    integer = {"schema": {"type": "integer"}}
    rates = {name: {"description": what, **integer} for name, what in RATE_HEADERS.items()}
    for answer in operation["responses"].values():
        answer["headers"] = rates
    for parameter in operation["parameters"]:
        parameter.pop("examples", None)  # its schema has them; here they would have to be named
    missing = set() if has_body else {400, 413, 415}
    missing |= set() if has_id else {404}
    for status, what in TOLD.items():
        if status not in missing:
            content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
            operation["responses"][status] = {"description": what, "content": content}
    for security in operation["security"]:
        scope = SCOPES[operation["operationId"]]
        security["Token"] = [scope]
        operation["description"] += f"\n\nScope: `{scope}`."


api = Site(
    title="Kettlewell orders",
    version="1",
    description=DESCRIPTION,
    urls_namespace="api",
    docs=Reference(),
    openapi_extra={"servers": [{"url": "/", "description": "This installation"}]},
)
api.add_router("/orders", orders.router)
api.add_router("/status-messages", messages.router)
problems.handle(api)
SCOPES = {
    operation.operation_id: callback.scope
    for router in (orders.router, messages.router)
    for view in router.path_operations.values()
    for operation in view.operations
    for callback in operation.auth_callbacks
    if isinstance(callback, Token)
}


def _guarded(view: View) -> View:
    """Have what django-ninja does not see to answered as a problem too."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        problem = _unreadable(request)
        response = problem.answer() if problem else view(request, *args, **kwargs)
        if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            response = Problem(
                status=HTTPStatus.METHOD_NOT_ALLOWED,
                code="method_not_allowed",
                detail=f"{request.method} is not for this address.",
                headers={"Allow": response["Allow"]},
            ).answer()
        if isinstance(response, HttpResponse):
            tell_rate(request, response)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return guarded


def _unreadable(request: HttpRequest) -> Problem | None:
    """Return what is wrong with a body, before anybody reads it."""
    try:
        sent = bool(request.body)
    except RequestDataTooBig:
        return Problem(
            status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE, code="too_large", detail="It is too large."
        )
    if sent and request.content_type != "application/json":
        return Problem(
            status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            code="not_json",
            detail=f"The body is {request.content_type or 'of no type'}, not application/json.",
        )
    return None


def _try(request: HttpRequest) -> HttpResponse:
    """Show the console that django-ninja brings; without JavaScript there is the reference."""
    document = reverse("api:openapi-json")
    shown = {"layout": "BaseLayout", "deepLinking": True, "url": document}
    return render(request, "api/console.html", {"settings": shown})


@csrf_exempt
def _nothing(_request: HttpRequest, rest: str = "") -> HttpResponse:  # noqa: ARG001 - its address
    return problems.not_found().answer()


def _urls() -> tuple[list[URLPattern], str, str]:
    patterns, application, namespace = api.urls
    own = [one for one in patterns if isinstance(one, URLPattern) and one.name != "api-root"]
    for pattern in own:
        pattern.callback = _guarded(cast("View", pattern.callback))
    own.append(path("docs/try", _try, name="try"))
    nothing = [path("", _nothing, name="api-root"), path("<path:rest>", _nothing, name="nothing")]
    return [*own, *nothing], application, namespace


urls = _urls()
