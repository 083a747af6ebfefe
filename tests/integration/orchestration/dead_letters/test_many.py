"""100,000 that are closed, or wait for their next try, cost pages and the work of each second nothing."""

import json

import pytest
from django.db import connection

from orchestration import submission, supervisor
from orchestration.alerting import alerts
from orchestration.applications import status_messages, task_status
from orchestration.dead_letters import actions
from orchestration.housekeeping import housekeeper
from orchestration.models import low_water
from orchestration.models.alert import Severity
from orchestration.supervision import doorbells
from orchestration.supervision.duties import parameters, question
from tests.support.engine import new_task
from tests.support.plans import analyse

pytestmark = pytest.mark.django_db
MANY = 100_000
FEW = 1500  # rows that a statement may read: a page counts up to a thousand or so
ENDS = {
    "closed": "clock_timestamp(), clock_timestamp(), NULL",
    "waiting": "NULL, NULL, clock_timestamp() + interval '1 hour'",
}
SUBMISSIONS = """
INSERT INTO orchestration_submission (workflow, reference, data, reply_to, priority, reason, tries,
    problem, refused_at, closed_at, retry_at)
SELECT 'greet', 'r' || n, '{{"name": "Ada"}}', '', 0, 'no', 1, {problem}, {end}
FROM generate_series(1, %s) AS n
"""
MESSAGES = """
INSERT INTO orchestration_statusmessage (reply_to, task_id, number, kind, detail, created_at, reason,
    tries, refused_at, closed_at, send_after)
SELECT 'shop', %s, n + 10, 'received', '{{}}', clock_timestamp(), 'no', 1, {end}
FROM generate_series(1, %s) AS n
"""


def rows_read(query, parameters):
    """Return how many rows of tables a statement reads."""

    def read(node):
        per_loop = node["Actual Rows"] + sum(
            number for name, number in node.items() if name.startswith("Rows Removed")
        )
        own = per_loop * node["Actual Loops"] if "Relation Name" in node else 0
        return own + sum(map(read, node.get("Plans", ())))

    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}", parameters)
        (plan,) = cursor.fetchone()
    (plan,) = json.loads(plan) if isinstance(plan, str) else plan
    return read(plan["Plan"])


@pytest.mark.parametrize("end", ENDS)
def test_they_are_not_read(end):
    problem = "'failing'" if end == "waiting" else "''"
    with connection.cursor() as cursor:
        cursor.execute(SUBMISSIONS.format(end=ENDS[end], problem=problem), [MANY])
        cursor.execute(MESSAGES.format(end=ENDS[end]), [str(new_task().id), MANY])
    analyse("orchestration_submission", "orchestration_statusmessage")
    for kind in ("submission", "status"):
        for cause in ("other", "greet", "shop", "greet/unknown", "greet/stuck", "shop/stuck"):
            alerts.raise_alert(f"{kind}/{cause}", severity=Severity.CRITICAL, title="a test")
    looked = {"workflow": "greet", "reference": "not yet a task"}
    statements = {
        "sweep": (question(supervisor.DUTIES), parameters(supervisor.DUTIES)),
        "housekeeping": (question(housekeeper.all_duties()), parameters(housekeeper.all_duties())),
        "bells": (doorbells.LOOK, low_water.all_agents()),
        "alerts": (alerts.RECOVERED, {}),
        "set aside": (task_status.SET_ASIDE, looked),
        "home": (actions.WAITING, {"limit": 1000}),
        "oldest": (status_messages.WAITING, {"seconds": 1.0, "now": None}),
    }
    for line in submission.DUE:
        statements[f"submission {line}"] = submission._due(line)[:200].query.sql_with_params()
    for line in status_messages.DUE:
        statements[f"status {line}"] = status_messages._due(line, "shop")[
            :200
        ].query.sql_with_params()
    read = {name: rows_read(*statement) for name, statement in statements.items()}
    assert {name: count for name, count in read.items() if count > 2 * FEW} == {}
