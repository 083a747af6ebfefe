"""The click in a task's trace: the web request that posts the task."""

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial

from django.core.exceptions import MiddlewareNotUsed
from django.db import transaction
from django.http import HttpRequest, HttpResponse

from ..database import clock
from . import spans, switch
from .spans import Named

# what the web request at hand has posted; None outside of one
_posted: ContextVar[list[Named] | None] = ContextVar("posted", default=None)


def follow_clicks(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Add each request that posts tasks to their traces: a middleware, in front of all others.

    A trace that the request belongs to is linked, and not continued: the task's goes on for days.
    """
    if not switch.ON:
        raise MiddlewareNotUsed
    switch.begin()

    def answer(request: HttpRequest) -> HttpResponse:
        began, tasks = clock.now(), list[Named]()
        token = _posted.set(tasks)
        try:
            response = get_response(request)
        finally:
            _posted.reset(token)
        if tasks:
            route = request.resolver_match.route if request.resolver_match else ""
            known: dict[str, str | int] = {
                "http.request.method": request.method or "",
                "http.route": f"/{route}",
                "http.response.status_code": response.status_code,
            }
            for task in tasks:
                spans.clicked(
                    task, began, f"{request.method} /{route}", known,
                    after=request.headers.get("traceparent", ""),
                )  # fmt: skip
        return response

    return answer


def post(tasks: list[Named], began: float) -> None:
    """Note tasks that are posted once the transaction at hand commits."""
    transaction.on_commit(partial(_note, tasks, began, _posted.get()), robust=True)


def _note(tasks: list[Named], began: float, posted: list[Named] | None) -> None:
    if posted is not None:
        posted += tasks
        return
    for task in tasks:
        spans.posted(task, began)
