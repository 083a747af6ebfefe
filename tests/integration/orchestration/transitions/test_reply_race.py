"""A row changes after its reply was looked at: the writing statement names the attempt that it expects."""

import pytest
from django.db import connection

from orchestration import scheduler
from orchestration.database.prepared import statement as prepared
from orchestration.models import Attempt, Event
from orchestration.transitions.moves import ENDED
from tests.support.database import another
from tests.support.engine import claimed, new_task, reply_to, states, step_of

pytestmark = pytest.mark.django_db(transaction=True)

# by a session that keeps to no lock, such as a person's
NEXT_ATTEMPT = """
SET session_replication_role = replica;
UPDATE orchestration_step SET attempt = attempt + 1, locked_by = 'scheduler-2' WHERE id = %s
"""


@pytest.mark.parametrize("outcome", ["done", "rejected", "transient"])
def test_accepted_reply_to_an_older_attempt_is_not_recorded(outcome):
    task = new_task()
    (request,) = claimed()
    raced = []

    def race(execute, statement, *rest):
        if f"EXECUTE {prepared(ENDED.statement).name}" in statement and not raced:
            with another() as cursor:
                cursor.execute(NEXT_ATTEMPT, [request.step])
            raced.append(request.step)
        return execute(statement, *rest)

    with connection.execute_wrapper(race):
        scheduler.run_once("scheduler-1", [reply_to(request, outcome).dump()], [])
    assert raced
    step = step_of(task)
    assert (step.process_state, step.attempt, step.locked_by) == ("processing", 2, "scheduler-2")
    assert states(task) == {"hello": "processing", "again": "waiting"}
    assert not Attempt.objects.exists()
    refused = Event.objects.get(kind="refused")
    assert (refused.attempt, "another attempt" in refused.reason) == (1, True)
