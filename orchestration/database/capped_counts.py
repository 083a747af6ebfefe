"""Counts of rows that may be millions go no further than a cap."""

from typing import TYPE_CHECKING, Any

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.utils.functional import cached_property

if TYPE_CHECKING:  # generic for the type checker only
    RowsPaginator = Paginator[Any]
else:
    RowsPaginator = Paginator

CAP = 1_000  # what pages say of a kind: "1,000+" says enough, and costs the same at any size
COUNT_CAP = 10_000  # counting millions of rows takes too long, and no person pages that far


class CappedPaginator(RowsPaginator):
    """Pages of a list that may hold millions: counts no further than the cap.

    >>> CappedPaginator(range(120), 50).page(3).object_list
    range(100, 120)
    """

    @cached_property
    def count(self) -> int:
        """Return how many rows there are, the cap if there are more."""
        rows = self.object_list
        return rows[:COUNT_CAP].count() if isinstance(rows, QuerySet) else len(rows)
