"""The audit page: who did what, when and why, merged from all places where that is kept.

Each source is read along its index, newest first, and the page is merged from the tops of these lists:
it costs the same however long they are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from ...database import clock
from .audit_sources import SOURCES, AuditEntry, AuditFilter, Cursor, Source

PAGE = 50


@dataclass(frozen=True, kw_only=True)
class AuditPage:
    """A page of the audit, newest first; `fresh` lines came since it was first shown."""

    now: datetime
    lines: Sequence[AuditEntry]
    newer: Cursor | None
    older: Cursor | None
    fresh: int


def trail(
    filters: AuditFilter,
    *,
    older: Cursor | None = None,
    newer: Cursor | None = None,
    top: Cursor | None = None,
) -> AuditPage:
    """Return a page of actions; `top` is the first line that is already shown."""
    fresh = len(acts(filters, newer=top)) if top else 0
    if top and not older and not newer:
        entries = acts(filters, older=Cursor(top.at, top.source, top.number + 1))
    else:
        entries = acts(filters, older=older, newer=newer)
    more = len(entries) > PAGE
    if newer:
        entries = entries[-PAGE:]
    lines = entries[:PAGE]
    if newer and len(lines) < PAGE:
        return trail(filters)  # nearly at the beginning: give the whole first page
    return AuditPage(
        now=clock.database_now(),
        lines=lines,
        newer=lines[0].place if lines and (older or (newer and more)) else None,
        older=lines[-1].place if lines and (more or newer) else None,
        fresh=min(fresh, PAGE),
    )


def kinds() -> list[tuple[str, str]]:
    """Return the kinds of acts to choose from: value and words."""
    return [kind for source in SOURCES for kind in source.kinds()]


def latest(count: int, *, personal: bool) -> Sequence[AuditEntry]:
    """Return the last acts of all."""
    return acts(AuditFilter(personal=personal), limit=count)


def count(filters: AuditFilter, most: int) -> int:
    """Return how many actions there are, no further than `most`."""
    return min(most, sum(rows[:most].count() for _, _, rows in _asked(filters)))


def acts(
    filters: AuditFilter,
    *,
    older: Cursor | None = None,
    newer: Cursor | None = None,
    limit: int = PAGE + 1,
) -> list[AuditEntry]:
    """Return the first lines, up to one more than a page, newest first, merged from all sources."""
    merged: list[tuple[Cursor, Source, Any]] = []
    for number, source, asked in _asked(filters):
        rows = asked
        if older:
            rows = rows.filter(_beyond(source, number, older, "lt"))
        if newer:
            rows = rows.filter(_beyond(source, number, newer, "gt"))
        sign = "" if newer else "-"
        ordered = rows.order_by(f"{sign}{source.at}", f"{sign}{source.number}")
        for row in ordered[:limit]:
            place = Cursor(getattr(row, source.at), number, getattr(row, source.number))
            merged.append((place, source, row))
    merged.sort(key=lambda entry: entry[0], reverse=True)
    merged = merged[-limit:] if newer else merged[:limit]
    for source in SOURCES:
        source.prepare([row for _, of, row in merged if of is source], filters)
    return [source.line(row, place, filters) for place, source, row in merged]


def _asked(filters: AuditFilter) -> Iterator[tuple[int, Source, QuerySet[Any]]]:
    for number, source in enumerate(SOURCES):
        if not filters.kind or filters.kind in dict(source.kinds()):
            yield number, source, _narrowed(source, filters)


def _narrowed(source: Source, filters: AuditFilter) -> QuerySet[Any]:
    rows = source.rows(filters)
    if filters.actor:
        rows = rows.filter(**{f"{source.actor}__iexact": filters.actor})
    if filters.since:
        rows = rows.filter(**{f"{source.at}__gte": filters.since})
    if filters.until:
        rows = rows.filter(**{f"{source.at}__lt": filters.until})
    return rows


def _beyond(source: Source, number: int, place: Cursor, way: str) -> Q:
    """Return the condition for rows on one side of a place: `way` is "lt" for older, "gt" for newer."""
    past = Q(**{f"{source.at}__{way}": place.at})
    here = Q(**{source.at: place.at})
    if number == place.source:
        return past | (here & Q(**{f"{source.number}__{way}": place.number}))
    before = number < place.source
    return past | here if before == (way == "lt") else past
