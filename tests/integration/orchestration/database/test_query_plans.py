"""What a time bounds is found by an index: cost follows what is due, not what lives.

The statements are those that sweeps, turns and pages really execute, explained on filled tables.
"""

import re
from datetime import datetime

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections
from django.test import Client

from bench.pages.measure import pages
from bench.pages.seed import seed
from orchestration import policies, scheduler, submission, supervisor
from orchestration.alerting import notifications
from orchestration.applications import push, status_messages
from orchestration.cluster import leader_election
from orchestration.cluster.duty import Sweep
from orchestration.cluster.leader_memory import Memory
from orchestration.console.queries import task_list
from orchestration.housekeeping import housekeeper
from orchestration.messaging import queues
from tests.support.engine import staff, sweep
from tests.support.plans import explained, nodes

pytestmark = pytest.mark.timeout(300)  # to fill the tables takes long
SETTINGS = re.compile(r"^(SET LOCAL [^;]*;)+")  # those that are sent with a statement
EXPLAINED = re.compile(r"\s*(SELECT|WITH|UPDATE|DELETE|INSERT)\b")
CLOCK = "clock_timestamp()"
PARAMETER = "timestamp with time zone"
# A handful of rows, or one that is found by its key; those that wait for a push are tried one by one.
SMALL = {
    "axes_accessattempt",  # log-ins by people
    "axes_accesslog",
    "django_session",
    "orchestration_alert",  # those that are open, by a partial index: one for each cause
    "orchestration_application",
    "orchestration_gate",  # a row for each agent
    "orchestration_incident",
    "orchestration_lease",
    "orchestration_operation",
    "orchestration_statusmessage",
    "orchestration_undorequest",
    "orchestration_worker",
    "usersessions_usersession",  # log-ins by people, too
}
ASKED_AGAIN = "orchestration_lease"  # one row; after waiting for it the time is another
# Whose bounds have to be there: else nothing was looked at.
BOUNDED = {
    "task_due",
    "task_undoing",
    "step_expiry",
    "step_retry",
    "step_unmended",
    "notification_outbox",
    "step_away",
}


class Recording:
    """Keeps each statement that has to do with time, with the first of its parameters."""

    def __init__(self):
        self.statements = {}

    def __call__(self, execute, statement, params, many, context):
        values = params.values() if isinstance(params, dict) else params or ()
        for sql in SETTINGS.sub("", statement).split(";\n"):  # some are sent together
            timed = CLOCK in sql or any(isinstance(value, datetime) for value in values)
            if timed and not many and EXPLAINED.match(sql):
                self.statements.setdefault(sql, params)
        return execute(statement, params, many, context)


def clocks(plan):
    """Return how a plan refers to the clock, which a sub-select of it read."""
    return [
        f"({node['Subplan Name']}).col1"
        for node in plan
        if node.get("Output") == [CLOCK] and "Subplan Name" in node
    ]


@pytest.fixture
def recorded(transactional_db, monkeypatch):
    """Record what is asked of a database after a month of much work, prepared statements by their texts."""
    monkeypatch.setitem(connection.settings_dict, "DISABLE_SERVER_SIDE_CURSORS", True)
    # a pooled leader leaves its own; of the connection itself, as its proxy would lose the list afterwards
    monkeypatch.setattr(connections["default"], "execute_wrappers", [])
    monkeypatch.setattr(
        task_list, "PAGE", 10
    )  # the statements are the same; to show rows takes longest
    seed(2_000, 400, lambda line: None)
    staff()
    client = Client()
    user = User.objects.create(username="olga", is_staff=True, is_superuser=True)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    recording = Recording()
    with connection.execute_wrapper(recording):
        leadership = leader_election.acquire("supervisor-1")
        sweep(leadership, memory=Memory())
        for duty in (*supervisor.DUTIES, *housekeeper.all_duties()):  # also those that are not due
            Sweep(leadership=leadership).perform(duty)
        scheduler.run_once("scheduler-1", [], policies.agents())
        submission.take(9)
        status_messages.deliver("shop", 9)
        notifications.send_due()
        push.send_due()
        for path in {page.path for page in pages() if "page" not in page.name}:
            assert client.get(path).status_code == 200
        assert client.get("/metrics").status_code == 200
    queues.connection().flushdb()
    connection.cursor().execute("ANALYZE")  # as autovacuum may at any moment
    return recording.statements


def test_what_is_due_and_what_is_first_come_from_an_index(recorded):
    """It is recorded once for both: to fill the tables takes longest."""
    require_bounded(recorded)
    require_in_order(recorded)


def require_bounded(recorded):
    """Require that a time limits the scan of an index, instead of filtering what it found."""
    searched, filtered = set(), []
    for statement, parameters in recorded.items():
        plan = explained(statement, parameters, off=("seqscan", "sort"), measured=True)
        times = [*clocks(plan), PARAMETER]
        for node in plan:
            if any(time in node.get("Index Cond", "") for time in times):
                searched.add(node["Index Name"])
            tested = node.get("Filter", "") + node.get("Join Filter", "")
            large = node.get("Relation Name", "a join") not in SMALL and "Relation Name" in node
            changing = CLOCK in tested and node.get("Relation Name") != ASKED_AGAIN
            few = node.get("Index Name") == "step_in_flight"  # no more than the window takes
            if changing or (large and not few and any(time in tested for time in times)):
                filtered.append((node.get("Relation Name"), tested, statement))
    assert filtered == []
    assert searched >= BOUNDED, BOUNDED - searched


def require_in_order(recorded):
    """Require that the first of many rows are not sorted: a sort reads all that wait, or live."""
    sorted_ones = []
    for statement, parameters in recorded.items():
        off = ("seqscan", "sort", "incremental_sort", "bitmapscan")
        for node in explained(statement, parameters, off=off, measured=True):
            if node["Node Type"] == "Limit" and "Sort" in node["Plans"][0]["Node Type"]:
                read = {part["Relation Name"] for part in nodes(node) if "Relation Name" in part}
                if read - SMALL:
                    sorted_ones.append((read, node["Plans"][0]["Sort Key"], statement))
    assert sorted_ones == []
