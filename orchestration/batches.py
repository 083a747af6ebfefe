"""A batch that fails as a whole is halved until what spoils it is alone: others never wait for it."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.db.models import QuerySet

from . import sql

logger = logging.getLogger(__name__)
Item = TypeVar("Item")
Rows = QuerySet[Any]


def take(
    rows: Rows,
    limit: int,
    deal: Callable[[Rows], int],
    set_aside: Callable[[int, Exception], None],
) -> int:
    """Deal with the first `limit` of `rows`; return how many were dealt with, or set aside by id.

    `deal` locks what it is given, passes over what is locked, and says how many it dealt with.
    """
    try:
        return deal(rows[:limit])
    except Exception as error:
        if sql.is_unavailable(error):
            raise
        logger.info("a batch of up to %d is dealt with in parts: %s", limit, error)
    ids = list(rows.values_list("id", flat=True)[:limit])
    return bisect(ids, lambda some: deal(rows.filter(id__in=some)), set_aside)


def bisect(
    items: Sequence[Item],
    deal: Callable[[Sequence[Item]], int],
    set_aside: Callable[[Item, Exception], None],
) -> int:
    """Deal with `items`, in their order; return how many were dealt with, or set aside.

    `deal` is one transaction, and says how many of its items it dealt with. An item with which it
    fails alone is set aside. Raises what says that the database is away: that is no item's fault.
    """
    if not items:
        return 0
    try:
        return deal(items)
    except Exception as error:
        if sql.is_unavailable(error):
            raise
        if len(items) == 1:
            set_aside(items[0], error)
            return 1
        logger.info("a batch of %d is dealt with in parts: %s", len(items), error)
    middle = len(items) // 2
    return bisect(items[:middle], deal, set_aside) + bisect(items[middle:], deal, set_aside)
