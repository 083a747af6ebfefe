"""Responses to operator actions: a redirect, or 409 with the earlier action."""

from typing import Any, TypeVar

from django.contrib import messages
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django_htmx.http import reswap, retarget, trigger_client_event

from ...database import clock
from ...models import Task
from ..queries import conflicts
from .in_place import htmx
from .permissions import user_of

COMMAND = "manage.py tasks"
Value = TypeVar("Value")


def or_404(value: Value | None) -> Value:
    """Return the value; raise `Http404` if it is None."""
    if value is None:
        raise Http404
    return value


def done(request: HttpRequest, sentence: str, to: str) -> HttpResponse:
    """Say what was done on the page at `to`."""
    messages.success(request, sentence)
    return HttpResponseRedirect(to, status=303)


def act_page(
    request: HttpRequest,
    template: str,
    form: Form,
    *,
    heading: str,
    back: tuple[str, str],
    section: str = "tasks",
    **context: Any,
) -> HttpResponse:
    """Return the page of an action: `ops/act.html`, with its form or, as 422, the form's errors."""
    context |= {"form": form, "heading": heading, "back": back, "section": section}
    return render(request, template, context, status=422 if request.method == "POST" else 200)


def to_task(task: Task) -> tuple[str, str]:
    """Return the address of a task's page, and the words of the link."""
    return reverse("ops:task", args=[task.id]), f"Back to {task}"


def conflict(
    request: HttpRequest,
    *,
    what: str,
    first: conflicts.UserAction | None,
    advice: str,
    back: tuple[str, str],
    section: str = "tasks",
) -> HttpResponse:
    """Return the page for an act that came too late: nothing was done. To htmx, its words alone.

    `what` it was about; `first` came before, if that is known; `advice` says what holds now; `back`
    is an address and its words.
    """
    context = late(request, what=what, first=first, advice=advice)
    if htmx(request):
        # the page stays, with what is typed elsewhere in it, and shows what holds now
        answer = retarget(render(request, "ops/_conflict.html", context, status=409), "#messages")
        return trigger_client_event(reswap(answer, "innerHTML"), "ops:refresh")
    context |= {"back_url": back[0], "back_words": back[1], "section": section}
    return render(request, "ops/conflict.html", context, status=409)


def late(
    request: HttpRequest, *, what: str, first: conflicts.UserAction | None, advice: str
) -> dict[str, Any]:
    """Return what `ops/_conflict.html` says of an act that came too late."""
    return {
        "what": what,
        "first": first,
        "yourself": first is not None and first.actor == user_of(request).get_username(),
        "advice": advice,
        "in_place": bool(htmx(request)),
        "now": clock.database_now(),
    }
