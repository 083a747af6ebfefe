"""How an act answers: done, and back to where it shows; or a 409 that says who was first, and when."""

from functools import partial

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render

from .. import queries, queues
from .access import user_of

COMMAND = "manage.py tasks"


def done(request: HttpRequest, sentence: str, to: str) -> HttpResponse:
    """Say what was done on the page at `to`."""
    messages.success(request, sentence)
    return HttpResponseRedirect(to, status=303)


def ring_when_committed() -> None:
    """Wake a scheduler once the act is committed; the supervisor would, a second later."""
    transaction.on_commit(partial(queues.try_to_ring, queues.SCHEDULER))


def conflict(
    request: HttpRequest,
    *,
    what: str,
    first: queries.Act | None,
    advice: str,
    back: tuple[str, str],
    section: str = "tasks",
) -> HttpResponse:
    """Return the page for an act that came too late: nothing was done.

    `what` it was about; `first` came before, if that is known; `advice` says what holds now; `back`
    is an address and its words.
    """
    context = {
        "what": what,
        "first": first,
        "yourself": first is not None and first.actor == user_of(request).get_username(),
        "advice": advice,
        "back_url": back[0],
        "back_words": back[1],
        "now": queries.database_now(),
        "section": section,
    }
    return render(request, "ops/conflict.html", context, status=409)
