"""Process rows in batches; bisect a failing batch to isolate the rows that fail."""

import logging
import time
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, TypeVar

from django.db.models import QuerySet

from .. import conf
from . import sql

logger = logging.getLogger(__name__)
Item = TypeVar("Item", bound=Hashable)
Rows = QuerySet[Any]

# The wait, as an SQL interval, of a row that has failed `tries` times and now fails again: exponential
# backoff with jitter in its upper half.
WAIT = f"""least({conf.RETRY_WAIT_S} * power(2, least(tries, 30)), {conf.RETRY_WAIT_CAP_S})
    * (0.5 + random() / 2) * interval '1 second'"""


def take(
    rows: Rows,
    limit: int,
    deal: Callable[[Rows], int],
    set_aside: Callable[[int, Exception], None],
    *,
    free: Rows,
) -> int:
    """Handle the first `limit` of `rows`; return how many were handled, or set aside by id.

    `deal` locks its rows, skips locked ones, and returns how many it handled. `free` are those of `rows`
    that need not wait for earlier ones.
    """
    try:
        return deal(rows[:limit])
    except Exception as error:
        if sql.is_unavailable(error):
            raise
        logger.info("a batch of up to %d is split: %s", limit, error)
    ids = list(rows.values_list("id", flat=True)[:limit])
    last = list(free.reverse().values_list("id", flat=True)[:1])
    return bisect(ids, lambda some: deal(rows.filter(id__in=some)), set_aside, witness=last)


def all_of(batch: Callable[[], int], seconds: float) -> int:
    """Run batches until one is not full, or the time is over; return the sum."""
    until = time.monotonic() + seconds
    total = count = batch()
    while count >= conf.BATCH_SIZE and time.monotonic() < until:
        count = batch()
        total += count
    return total


def all_found(
    find: Callable[[int, Collection[Item]], Sequence[Item]],
    deal: Callable[[Sequence[Item]], int],
    seconds: float,
) -> tuple[int, dict[Item, Exception]]:
    """Handle all items found, in batches; return how many, and the errors of those that fail.

    `find` returns a number of items, without the given ones. Locked items, which `deal` skips, do not
    block the items behind them. No batch starts once the time is over.
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

    while found := find(conf.BATCH_SIZE, passed | failing.keys()):
        aside = len(passed) + len(failing)
        # with patience for all items, as the next `find` leaves out those that are set aside
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
    """Handle `items`, in their order; return how many were handled or set aside.

    `deal` is one transaction, and returns how many of its items it handled. An item that fails alone is
    set aside.

    Raises the error, and leaves the remaining items untouched, if the database is unavailable: no item is
    the cause. Likewise if `patience` items were set aside, `deal` has succeeded for none, others remain,
    and `deal` fails for the `witness` too: then all fail for a common reason.
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
                logger.info("a batch of %d is split: %s", len(part), error)
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
    """Handle `items`, if there are any; return how many were handled, 0 if that fails."""
    try:
        return deal(items) if items else 0
    except Exception as error:
        if sql.is_unavailable(error):
            raise
        return 0
