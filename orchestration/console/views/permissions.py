"""Who may come in: the check is in the endpoint, not only in what a page offers."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Concatenate, ParamSpec, cast
from urllib.parse import urlsplit
from uuid import UUID

from django.contrib.auth.models import Permission, User
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from ...models import Task
from ...people.person import Person
from ...people.redaction import Redactor, redactors
from ...people.roles import ROLES
from .in_place import htmx

OPERATE = "orchestration.operate"
RESUBMIT = "orchestration.resubmit"
CORRECT = "orchestration.correct"
UNDO = "orchestration.undo"
FORCE_UNDO = "orchestration.force_undo"
HOLD = "orchestration.hold"
PRIORITIZE = "orchestration.prioritize"
ACKNOWLEDGE = "orchestration.acknowledge"
BULK = "orchestration.bulk"
MUTE = "orchestration.mute"
APPROVE = "orchestration.approve"
REQUEUE = "orchestration.requeue"
START = "orchestration.start"
SHARE = "orchestration.share"
SEE_PERSONAL = "orchestration.see_personal"

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


def requires(*permissions: str) -> Callable[[View[P]], View[P]]:
    """Let in those who hold all of `permissions`; send strangers to the login, refuse the rest."""

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            if not request.user.is_authenticated:
                return _to_login(request)
            if not request.user.has_perms(permissions):
                return forbidden(request, *permissions)
            return view(request, *args, **kwargs)

        return guarded

    return decorate


def forbidden(request: HttpRequest, *permissions: str) -> HttpResponse:
    """Refuse, and say what is missing and which roles have it."""
    lacked = [name for name in permissions if not user_of(request).has_perm(name)]
    names = Permission.objects.filter(
        content_type__app_label="orchestration",
        codename__in=[name.partition(".")[2] for name in lacked],
    )
    context = {
        "lacked": list(names.order_by("name").values_list("name", flat=True)),
        "back": _page_before(request),
        "roles": [role for role, held in ROLES.items() if set(permissions) <= set(held)],
    }
    return render(request, "ops/forbidden.html", context, status=403)


def _to_login(request: HttpRequest) -> HttpResponse:
    if htmx(request):
        # the session ended while a page polled: what is on it stays, and it offers to log in
        return HttpResponse(status=401)
    # after a login the browser asks with GET: an act would not be repeated, so start at its page
    return redirect_to_login(
        request.get_full_path() if request.method == "GET" else _page_before(request)
    )


def _page_before(request: HttpRequest) -> str:
    """Return the address of the dashboard's page that an act was sent from."""
    start = reverse("ops:overview")
    before = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(before, {request.get_host()}):
        return start
    parts = urlsplit(before)
    address = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return address if address.startswith(start) else start


def is_redacted(request: HttpRequest) -> bool:
    """Return whether personal data are hidden from this user."""
    return not user_of(request).has_perm(SEE_PERSONAL)


def redactor_for(request: HttpRequest, task: Task) -> Redactor | None:
    """Return what hides a task's personal data from this user; None from one who may see it."""
    return redactors_for(request, [task]).get(task.id)


def redactors_for(request: HttpRequest, tasks: Iterable[Task]) -> dict[UUID, Redactor]:
    """Return what hides personal data from this user, by task; empty for one who may see them."""
    return redactors(tasks) if is_redacted(request) else {}


def user_of(request: HttpRequest) -> User:
    """Return the user of a request that `requires` let in."""
    return cast("User", request.user)


def person_of(request: HttpRequest) -> Person:
    """Return who acts by a request that `requires` let in."""
    return Person.of(user_of(request))
