"""The runbook as a page, so that each alert can link to its paragraph."""

import re

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_safe
from markdown_it import MarkdownIt

from ...alerting.runbook import PAGE
from ...alerting.runbook import text as runbook_text
from .permissions import OPERATE, requires

# a link to another document
OF_ANOTHER = re.compile(r"\[([^\]]+)\]\((?!#|https?:)([^)#]+)(?:#[^)]*)?\)")


@require_safe
@requires(OPERATE)
def runbook(request: HttpRequest) -> HttpResponse:
    """Show docs/run/runbook.md; 404 if the installation is without it."""
    try:
        text = runbook_text()
    except FileNotFoundError as missing:
        raise Http404(f"{PAGE} is not installed") from missing
    text = OF_ANOTHER.sub(r"\1 (`docs/run/\2`)", text)  # there is no page of it
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    context = {"page": mark_safe(page), "section": "runbook"}  # noqa: S308 - a file of the release
    return render(request, "ops/runbook.html", context)
