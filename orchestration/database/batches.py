"""Process rows in batches; bisect a failing batch to isolate the rows that fail."""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import QuerySet

from .. import conf
from . import sql

logger = logging.getLogger(__name__)
Item = TypeVar("Item", bound=Hashable)
Rows = QuerySet[Any]


def _all(rows: Rows) -> Rows:
    return rows


@dataclass(frozen=True, kw_only=True)
class Loop:
    """Takes due rows batch by batch; rows of one `group` may fail for one reason.

    `first` handles the first of them, up to a number, and `deal` some of those that are `due`, each in one
    transaction; both lock their rows, skip locked ones, and return how many they handled. `fail` sets a row
    aside; a `refusal` is the error by which an application decides that. `pause` has a group left alone for
    a while. `free` returns those rows that need not wait for earlier ones.
    """

    group: str
    due: Callable[[], Rows]
    first: Callable[[int], int]
    deal: Callable[[Rows], int]
    fail: Callable[[int, Exception], None]
    pause: Callable[[str], None]
    refusal: type[Exception]
    free: Callable[[Rows], Rows] = _all

    def take(self, limit: int) -> int:
        """Handle the first `limit` rows; return how many were handled or set aside, or are paused now."""
        try:
            return self.first(limit)
        except Exception as error:
            if sql.is_unavailable(error):
                raise
            logger.info("a batch of up to %d is split: %s", limit, error)
        groups: dict[str, list[int]] = defaultdict(list)
        for number, group in self.due().values_list("id", self.group)[:limit]:
            groups[group].append(number)
        return sum(self._take_group(group, ids) for group, ids in groups.items())

    def _take_group(self, group: str, ids: Sequence[int]) -> int:
        """Take rows of one group in parts; if one after the other fails, pause it: all of it would fail."""
        rows = self.due().filter(**{self.group: group})
        last = list(self.free(rows).reverse().values_list("id", flat=True)[:1])
        try:
            return bisect(
                ids, lambda part: self.deal(rows.filter(id__in=part)), self.fail, witness=last
            )
        except self.refusal:
            pass  # one after the other was set aside: the rest has its turn
        except Exception as error:
            if sql.is_unavailable(error):
                raise
            self.pause(group)
            logger.exception("%s: one %s after the other fails", group, rows.model.__name__)
        return len(ids)  # others may wait behind these


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

    def in_time(part: Sequence[Item]) -> int:
        return deal(part) if time.monotonic() < until else 0

    def set_aside(item: Item, error: Exception) -> None:
        if sql.is_busy(error):
            passed.add(item)
        else:
            failing[item] = error

    while items := find(conf.BATCH_SIZE, passed | failing.keys()):
        aside = len(passed) + len(failing)
        # with patience for all items, as the next `find` leaves out those that are set aside
        done = bisect(items, in_time, set_aside, patience=len(items))
        total += done - (len(passed) + len(failing) - aside)
        if done < len(items):
            passed.update(items)
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
    apart: bool = False,
) -> int:
    """Handle `items`, in their order; return how many were handled or set aside.

    `deal` is one transaction, and returns how many of its items it handled. An item that fails alone is
    set aside. With `apart`, each item has a transaction of its own from the start.

    Raises the error, and leaves the remaining items untouched, if the database is unavailable: no item is
    the cause. Likewise if `patience` items were set aside, `deal` has succeeded for none, others remain,
    and `deal` fails for the `witness` too: then all fail for a common reason.
    """
    done = failed = 0
    works = False
    parts = [[item] for item in reversed(items)] if apart or not items else [items]
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
