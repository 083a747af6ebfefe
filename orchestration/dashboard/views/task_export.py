"""Exports of the list of tasks: what it shows of every task of a search, as a file."""

from typing import cast

from django.contrib import messages
from django.db import DEFAULT_DB_ALIAS
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from ... import conf
from ...database.time_limit import TooSlow, time_limit
from ...models.export import ExportFormat
from ...queries import task_export, word_meanings
from ...queries.search_query import read
from ..export_file import sent
from .permissions import OPERATE, SEE_PERSONAL, requires, user_of
from .task_list import TOO_SLOW, asking


@require_POST
@requires(OPERATE)
def export_tasks(request: HttpRequest) -> HttpResponse:
    """Send the tasks of a search as a file; the history has who did, and which."""
    user = user_of(request)
    search = read({"q": request.POST.get("q", "")}, personal=user.has_perm(SEE_PERSONAL))
    problems = list(search.problems)
    asked = request.POST.get("format", "")
    if asked not in ExportFormat.values:
        problems.append("Choose the format of the file.")
    if not problems:
        try:
            with time_limit(conf.SEARCH_TIMEOUT_S, DEFAULT_DB_ALIAS):
                meant = word_meanings.resolved(search)
            records = task_export.begin(search, meant, actor=user.get_username(), form=asked)
            name = f"tasks-{timezone.now():%Y%m%d-%H%M%S}"
            # a stream is an answer like any other, though not of this class
            return cast("HttpResponse", sent(records, ExportFormat(asked), name))
        except TooSlow:
            problems.append(TOO_SLOW)
    for problem in problems:
        messages.error(request, f"Nothing was exported. {problem}")
    return HttpResponseRedirect(f"{reverse('ops:tasks')}{asking(search.text)}", status=303)
