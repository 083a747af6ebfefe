"""Remove old rows that belong to no task: each table has a rule of its own.

Never removed, as they are few: incidents (a row for each cause), operations, what people did apart from
tasks, jumps of the clock, versions of settings.
"""

from dataclasses import dataclass

from django.conf import settings
from django.db import connection

from .. import conf
from ..models import SupervisorPolicy


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Which rows of a table are old: `where` takes %(days)s; `first` are rows that refer to them."""

    table: str
    where: str
    key: str = "id"
    first: tuple[str, str] | None = None  # table and column


OLD = "(SELECT clock_timestamp()) - %(days)s * interval '1 day'"
RULES = (
    # by alert_closed; the steps that it stopped, by step_alert
    Rule(
        table="orchestration_alert",
        where=f"closed_at < {OLD}",
        first=("orchestration_notification", "alert_id"),
    ),
    # by audit_recent
    Rule(table="orchestration_auditrun", where=f"started_at < {OLD}"),
    # by hold_ended; those of tasks go with these
    Rule(
        table="orchestration_hold",
        where=f"scope <> 'task' AND until IS NOT NULL AND until < {OLD} AND cleared",
    ),
    # by request_done; then by request_aside, which is small
    Rule(table="orchestration_taskrequest", where=f"done_at < {OLD}"),
    Rule(
        table="orchestration_taskrequest",
        where=f"refused_at IS NOT NULL AND closed_at < {OLD}",
    ),
    # by submission_set_aside, which is small
    Rule(
        table="orchestration_submission",
        where=f"refused_at IS NOT NULL AND closed_at < {OLD}",
    ),
    # by status_number_once: about submissions that never were tasks
    Rule(
        table="orchestration_statusmessage",
        where=f"task_id IS NULL AND closed_at < {OLD}",
    ),
    # all of it: a few thousand rows for each incident
    Rule(table="orchestration_incidenthour", where=f"hour < {OLD}"),
)
REMOVE = """
WITH old AS MATERIALIZED (
    SELECT {key} FROM {table} WHERE {where} LIMIT {most} FOR UPDATE SKIP LOCKED
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
    for table, (key, column, kept) in settings.REMOVE_AFTER_DAYS.items():
        total += _remove(Rule(table=table, key=key, where=f"{column} < {OLD}"), kept)
    return total


def _remove(rule: Rule, days: float) -> int:
    first = FIRST.format(*rule.first, key=rule.key) if rule.first else ""
    statement = REMOVE.format(
        key=rule.key, table=rule.table, where=rule.where, most=conf.BATCH_SIZE, first=first
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, {"days": days})
        return int(cursor.rowcount)
