"""How much one person may do alone within 24 hours, counted over all acts and accounts.

A user who raises a limit stays below the former one for a day.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ..database import sql
from ..models import Operation, SoloAct, SupervisorPolicy
from ..models.fields import DatabaseNow
from ..payloads.money import format_money
from . import accounts
from .person import SHELL, Person

KEPT_FOR = timedelta(days=2)  # twice as long as it counts

# Two acts of one person at the same moment would each see the day without the other. The number is the
# lowest one among a person's accounts.
LOCK = "SELECT pg_advisory_xact_lock(1516895234, %(person)s)"

# By the index solo_act_of_day. The first row is the number of items; others are sums by currency.
DONE = """
WITH day AS (
    SELECT items, money FROM orchestration_soloact
    WHERE account = ANY(%(accounts)s) AND at > (SELECT clock_timestamp()) - interval '24 hours'
)
SELECT '', coalesce(sum(items), 0) FROM day
UNION ALL
SELECT m.key, sum(m.value::bigint) FROM day, jsonb_each_text(day.money) m GROUP BY m.key
"""

# The values that each change of the policy within a day replaced, if one of these accounts made it.
REPLACED = """
SELECT min(items), min(sum) FROM (
    SELECT history_user_id, history_date, lag(approve_items, 1, %(items)s) OVER w AS items,
        lag(approve_sum, 1, %(sum)s) OVER w AS sum
    FROM orchestration_historicalsupervisorpolicy WINDOW w AS (ORDER BY history_date, history_id)
) AS changes
WHERE history_user_id = ANY(%(accounts)s) AND history_date > (SELECT clock_timestamp()) - interval '24 hours'
"""


@dataclass(frozen=True, kw_only=True)
class Day:
    """What a person did alone in the last 24 hours, and the limits; None stands for none.

    `money` and `most_money` are in minor units, the first by currency.
    """

    items: int
    money: Mapping[str, int]
    most_items: int | None
    most_money: int | None

    def excess(self, items: int, money: Mapping[str, int]) -> str:
        """Return why so much more needs a second person, empty if it does not."""
        if self.most_items is not None and self.items + items > self.most_items:
            more = f"{items:,} item{'' if items == 1 else 's'}"
            return self._over(more, f"{self.items:,}", f"{self.most_items:,}")
        for currency, amount in sorted(money.items()):
            before = self.money.get(currency, 0)
            if self.most_money is not None and before + amount > self.most_money:
                figures = (amount, before, self.most_money)
                return self._over(*(format_money(figure, currency) for figure in figures))
        return ""

    def _over(self, more: str, before: str, most: str) -> str:
        if not self.items:
            return f"this affects {more} (limit: {most})"
        return f"this affects {more}, after {before} in the last 24 hours (limit: {most})"

    @property
    def figures(self) -> list[tuple[str, str]]:
        """Return what was done and the limit, as text: of items, then of each currency."""
        rows = []
        if self.most_items is not None:
            rows.append((f"{self.items:,}", f"{self.most_items:,} items"))
        if self.most_money is not None:
            for currency, amount in sorted(self.money.items()):
                most = format_money(self.most_money, currency)
                rows.append((format_money(amount, currency), most))
        return rows


def day_of(person: Person, *, lock: bool = False) -> Day:
    """Return a person's day; with `lock`, no other act of the person counts until the transaction's end."""
    held = _accounts(person)
    if lock:
        sql.run(LOCK, {"person": min(held)})
    done = dict(sql.run(DONE, {"accounts": sorted(held)}))
    most_items, most_money = _limits(held)
    return Day(
        items=int(done.pop("")),
        money={currency: int(amount) for currency, amount in done.items()},
        most_items=most_items,
        most_money=most_money,
    )


def count(
    person: Person, items: int, money: Mapping[str, int], operation: Operation | None = None
) -> None:
    """Count what a person does alone; call it in the transaction that does it."""
    account = SHELL if person.user is None else person.user
    SoloAct.objects.create(account=account, items=items, money=dict(money), operation=operation)


def refund_unused(operation: Operation) -> None:
    """Release the limit that an aborted operation did not use."""
    acts = SoloAct.objects.filter(operation=operation)
    done = operation.sent + operation.fixed + operation.again + operation.other
    if done:
        acts.update(items=done)
    else:
        acts.delete()


def prune() -> int:
    """Delete what no longer counts; return how many rows."""
    return SoloAct.objects.filter(at__lt=DatabaseNow() - KEPT_FOR).delete()[0]


def _accounts(person: Person) -> set[int]:
    return {SHELL} if person.user is None else accounts.of_person(person.user)


def _limits(held: set[int]) -> tuple[int | None, int | None]:
    """Return the limits of items and money that hold for a person with these accounts."""
    usual = SupervisorPolicy()
    now = SupervisorPolicy.objects.first() or usual
    parameters: dict[str, Any] = {
        "accounts": sorted(held), "items": usual.approve_items, "sum": usual.approve_sum,
    }  # fmt: skip
    ((items, money),) = sql.run(REPLACED, parameters)
    return _lower(now.approve_items, items), _lower(now.approve_sum, money)


def _lower(first: int | None, second: int | None) -> int | None:
    known = [limit for limit in (first, second) if limit is not None]
    return min(known) if known else None
