"""Pages that stay up to date: one part of the page polls its own address.

The poll names the digest of what it shows; while that is still true the answer is 204 and nothing
moves. Ages and countdowns are not part of the digest (the browser counts on), nor are CSRF tokens,
which differ each time. With the part come the counts and the troubles that every page shows.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers
from django.utils.safestring import mark_safe

from ...database import replica
from ..queries import health
from .in_place import htmx
from .replica import BEHIND

MENTIONED_S = 1  # by how much a replica may be behind without a word
VOLATILE = re.compile(r'>[^<]*</time>|name="csrfmiddlewaretoken" value="[^"]*"')


def live(
    request: HttpRequest,
    page: str,
    part: str,
    context: Mapping[str, Any],
    *,
    address: str = "",
    keep: Mapping[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Return `page` with its live `part`; to htmx the part alone; to a poll 204 where it is as it was.

    `address` is what is polled, where that is not the request's own; `keep` are further parameters
    of it. What stands on every page (counts, what is wrong) comes along with the part, and with the
    answer to an act also what was done.
    """
    with replica.primary():  # an old row must not make the engine look ill
        shell = health.shell()
    behind = request.META.get(BEHIND, 0)
    context = {**context, "shell": shell, "behind": behind if behind > MENTIONED_S else 0}
    rendered = render_to_string(part, context, request)
    digest = _digest(rendered, repr(context["shell"]), repr(context["behind"]))
    in_place = bool(htmx(request))
    polled = in_place and "seen" in request.GET
    if polled and request.GET["seen"] == digest:
        response = HttpResponse(status=204)
    else:
        query = request.GET.copy()
        for name, value in {**(keep or {}), "seen": digest}.items():
            query[name] = value
        response = render(
            request,
            "ops/_live.html" if in_place else page,
            {
                **context,
                "in_place": in_place,
                "polled": polled,
                "part": mark_safe(rendered),  # noqa: S308 - a template's own output
                "live_url": f"{address or request.path}?{query.urlencode()}",
            },
            status=status,
        )
    patch_vary_headers(response, ["HX-Request"])
    response.headers["Cache-Control"] = "no-store"
    return response


def _digest(*texts: str) -> str:
    seen = "".join(VOLATILE.sub("", text) for text in texts)
    return hashlib.blake2s(seen.encode(), digest_size=8).hexdigest()
