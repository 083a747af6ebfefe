"""No statement of a turn reads more than it returns, beside thousands that wait or are in flight."""

import pytest
from django.db import connection

from bench.pages.seed import seed_backlog
from bench.turn_plans import Read, explain_turns
from orchestration.applications import task_status
from orchestration.messaging import queues
from orchestration.models import Policy, Task
from orchestration.transitions.moves import ENDED

AGENTS = ["inventory", "payment"]
# what a turn that records and claims consists of: the table, and what is done to it
NEEDED = {
    "sas_select_task",
    "sas_select_step",
    "sas_select_gate",
    "sas_update_step",
    "sas_update_task",
    "sas_insert_statusmessage",
}


@pytest.fixture
def backlog(transactional_db):
    """Two thousand tasks with submitter and owner wait, and hundreds of steps are in flight."""
    seed_backlog(2_000, 500, lambda line: None)
    Task.objects.update(reply_to="till", notify_steps=True, owner_application="shop")
    Policy.objects.update(window=10_000, rate=None)
    connection.cursor().execute("ANALYZE")
    yield
    queues.connection().flushdb()


def kinds(reads):
    return {read.statement.rsplit("_", 1)[0] for read in reads}


def test_statements_of_a_turn_read_no_more_than_they_return(backlog):
    reads = explain_turns(AGENTS, 20)
    assert [read for read in reads if read.wasteful] == []
    assert kinds(reads) >= NEEDED


def test_write_that_goes_by_what_is_in_flight_is_found(backlog, monkeypatch):
    by_key = "WHERE s.id = r.id"
    assert by_key in ENDED.statement
    by_state = ENDED.statement.replace(
        by_key,
        "WHERE s.id + 0 = r.id AND s.agent = 'inventory' AND s.process_state = 'processing'",
    )
    monkeypatch.setattr(ENDED, "statement", by_state)
    assert any(read.wasteful for read in explain_turns(["inventory"], 20))


def test_message_that_reads_steps_in_the_order_of_their_ids_is_found(backlog, monkeypatch):
    by_id = task_status.SNAPSHOTS.replace("ORDER BY s.name, s.direction", "ORDER BY s.id")
    assert by_id != task_status.SNAPSHOTS
    monkeypatch.setattr(task_status, "SNAPSHOTS", by_id)
    assert any(read.wasteful for read in explain_turns(["inventory"], 20))


@pytest.mark.parametrize(
    ("way", "returned", "dropped", "wasteful"),
    [
        ("Index Scan", 40, 40, False),
        ("Index Scan", 40, 46, True),
        ("Index Only Scan", 0, 0, False),
        ("Seq Scan", 1, 0, True),
        ("Bitmap Heap Scan", 1, 0, True),
    ],
)
def test_read_is_wasteful_if_it_drops_more_than_it_returns(way, returned, dropped, wasteful):
    read = Read(statement="x", way=way, index="", returned=returned, dropped=dropped, pages=1)
    assert read.wasteful == wasteful
