"""Remove old rows that belong to no task: each table has a rule of its own.

Never removed, as they are few: incidents (a row for each cause), operations, what people did apart from
tasks, jumps of the clock, versions of settings.
"""

from dataclasses import dataclass

from django.conf import settings
from django.db import connection

from ... import conf
from ...cluster.duty import Duty
from ...models import SupervisorPolicy
from ...models.inbox import STATUSES, SUBMISSIONS
from ...models.request import REQUESTS


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Rows of a table are old by a time; `also` is a further condition, `first` what refers to them."""

    table: str
    time: str
    also: str = "true"
    key: str = "id"
    first: tuple[str, str] | None = None  # table and column


RULES = (
    # by alert_closed; the steps that it stopped, by step_alert
    Rule(
        table="orchestration_alert",
        time="closed_at",
        first=("orchestration_notification", "alert_id"),
    ),
    # by audit_recent
    Rule(table="orchestration_auditrun", time="started_at"),
    # by hold_ended; those of tasks go with these
    Rule(table="orchestration_hold", time="until", also="scope <> 'task' AND cleared"),
    # by request_done
    Rule(table=REQUESTS.table, time=REQUESTS.done_at),
    # by request_closed, submission_closed and status_closed; those of tasks go with these
    *(
        Rule(table=lane.table, time=lane.closed_at, also=f"{lane.task} IS NULL")
        for lane in (REQUESTS, SUBMISSIONS, STATUSES)
    ),
    # by incident_hour_by_time
    Rule(table="orchestration_incidenthour", time="hour"),
)
REMOVE = """
WITH old AS MATERIALIZED (
    SELECT {key} FROM {table}
    WHERE {time} < (SELECT clock_timestamp()) - %(days)s * interval '1 day' AND {also}
    ORDER BY {time} LIMIT {most} FOR UPDATE SKIP LOCKED
){first}
DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM old)
"""
FIRST = """, refer AS (DELETE FROM {0} WHERE {1} IN (SELECT {key} FROM old))"""


def remove_old() -> int:
    """Remove a batch of the old rows of each table; return how many were removed."""
    days = SupervisorPolicy.objects.values_list("keep_records_days", flat=True).get(id=1)
    total = 0
    if days is not None:
        total += sum(_remove(rule, days) for rule in RULES)
    for table, (key, column, table_days) in settings.REMOVE_AFTER_DAYS.items():
        total += _remove(Rule(table=table, key=key, time=column), table_days)
    return total


def _remove(rule: Rule, days: float) -> int:
    first = FIRST.format(*rule.first, key=rule.key) if rule.first else ""
    statement = REMOVE.format(
        key=rule.key,
        table=rule.table,
        time=rule.time,
        also=rule.also,
        most=conf.BATCH_SIZE,
        first=first,
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, {"days": days})
        return int(cursor.rowcount)


REMOVE_RECORDS = Duty(
    name="remove old records", run=lambda _: remove_old(), every=conf.RECORDS_INTERVAL_S
)
