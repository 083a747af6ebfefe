"""A batch that fails as a whole is halved until what spoils it is alone: others never wait for it."""

import logging
import time
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, TypeVar

from django.db.models import QuerySet

from . import conf, sql

logger = logging.getLogger(__name__)
Item = TypeVar("Item", bound=Hashable)
Rows = QuerySet[Any]

# How long what has failed `tries` times, and now fails again, waits for its next try: doubling, its
# upper half by lot, as an interval.
WAIT = f"""least({conf.RETRY_WAIT} * power(2, least(tries, 30)), {conf.RETRY_WAIT_CAP})
    * (0.5 + random() / 2) * interval '1 second'"""


def take(
    rows: Rows,
    limit: int,
    deal: Callable[[Rows], int],
    set_aside: Callable[[int, Exception], None],
    *,
    free: Rows,
) -> int:
    """Deal with the first `limit` of `rows`; return how many were dealt with, or set aside by id.

    `deal` locks what it is given, passes over what is locked, and says how many it dealt with.
    `free` are those of `rows` that need not wait for earlier ones.
    """
    try:
        return deal(rows[:limit])
    except Exception as error:
        if sql.is_unavailable(error):
            raise
        logger.info("a batch of up to %d is dealt with in parts: %s", limit, error)
    ids = list(rows.values_list("id", flat=True)[:limit])
    last = list(free.reverse().values_list("id", flat=True)[:1])
    return bisect(ids, lambda some: deal(rows.filter(id__in=some)), set_aside, witness=last)


def all_of(batch: Callable[[], int], seconds: float) -> int:
    """Go on until a batch is not full, or the time is over; return the sum."""
    until = time.monotonic() + seconds
    total = count = batch()
    while count >= conf.BATCH and time.monotonic() < until:
        count = batch()
        total += count
    return total


def all_found(
    find: Callable[[int, Collection[Item]], Sequence[Item]],
    deal: Callable[[Sequence[Item]], int],
    seconds: float,
) -> tuple[int, dict[Item, Exception]]:
    """Deal with all items that are found, in batches; return with how many, and which fail, and why.

    `find` returns a number of items beyond some. Those that others have locked, which `deal` passes
    over, keep none behind them waiting. No part of a batch is begun once the time is over.
    """
    until = time.monotonic() + seconds
    failing: dict[Item, Exception] = {}
    passed: set[Item] = set()
    total = 0

    def in_time(some: Sequence[Item]) -> int:
        return deal(some) if time.monotonic() < until else 0

    def set_aside(item: Item, error: Exception) -> None:
        if sql.is_busy(error):
            passed.add(item)
        else:
            failing[item] = error

    while found := find(conf.BATCH, passed | failing.keys()):
        aside = len(passed) + len(failing)
        # with patience for all: what is set aside is in the way of the others each time
        done = bisect(found, in_time, set_aside, patience=len(found))
        total += done - (len(passed) + len(failing) - aside)
        if done < len(found):
            passed.update(found)
        if time.monotonic() >= until:
            break
    return total, failing


def bisect(
    items: Sequence[Item],
    deal: Callable[[Sequence[Item]], int],
    set_aside: Callable[[Item, Exception], None],
    *,
    patience: int = 5,
    witness: Sequence[Item] = (),
) -> int:
    """Deal with `items`, in their order; return how many were dealt with, or set aside.

    `deal` is one transaction, and says how many of its items it dealt with. An item with which it
    fails alone is set aside.

    Raises the error, with the items from there on untouched, when the database is unavailable: no
    item is the cause. The same after `patience` items were set aside and `deal` has worked for none,
    while others remain, and does not work for the `witness` either: they fail alike, for a reason
    that is not in them.
    """
    done = failed = 0
    works = False
    parts = [items] if items else []
    while parts:
        part = parts.pop()
        try:
            done += deal(part)
            works = True
        except Exception as error:
            if sql.is_unavailable(error):
                raise
            if len(part) > 1:
                logger.info("a batch of %d is dealt with in parts: %s", len(part), error)
                middle = len(part) // 2
                parts += [part[middle:], part[:middle]]
                continue
            set_aside(part[0], error)
            failed += 1
            if failed >= patience and parts and not works:
                dealt = _try(deal, witness)
                if not dealt:
                    raise
                done += dealt
                works = True
    return done + failed


def _try(deal: Callable[[Sequence[Item]], int], items: Sequence[Item]) -> int:
    """Deal with `items`, if there are any; return how many were dealt with, none if that fails."""
    try:
        return deal(items) if items else 0
    except Exception as error:
        if sql.is_unavailable(error):
            raise
        return 0
