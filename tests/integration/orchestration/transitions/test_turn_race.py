"""A turn sends what its transaction claimed, and nothing that another scheduler may have claimed since."""

from collections import Counter

import pytest
from django.db import connection

from orchestration import scheduler
from orchestration.database.prepared import statement as prepared
from orchestration.messaging import queues
from orchestration.messaging.messages import Request
from orchestration.models import Step
from orchestration.transitions.gates import LOCK
from tests.support.database import commits_fail
from tests.support.engine import claimed, new_task, reply_to, states, step_of
from tests.support.together import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def sent() -> list[Request]:
    """Return the requests in the agent's inbox."""
    raw = queues.connection().lrange(queues.inbox("greeter"), 0, -1)
    return [Request.parse(item) for item in raw if item != queues.LOOK]


def test_another_scheduler_claims_between_the_record_and_the_claim():
    """A turn that has raised an alert commits before it claims: what it released is anyone's."""
    good, bad = new_task(), new_task()
    requests = {request.task: request for request in claimed()}
    replies = [reply_to(requests[good.id]), reply_to(requests[bad.id], "rejected")]
    other: list[Request] = []

    def race(execute, statement, *rest):
        if f"EXECUTE {prepared(LOCK).name}" in statement and not other:
            # at the first statement of the claim's own transaction
            other.extend(at_once({"claim": lambda: claimed("scheduler-2")})["claim"])
        return execute(statement, *rest)

    with connection.execute_wrapper(race):
        scheduler.run_once("scheduler-1", [reply.dump() for reply in replies], [])
    assert [request.step for request in other] == [step_of(good, "again").id]
    assert sent() == []
    step = step_of(good, "again")
    assert (step.process_state, step.attempt, step.locked_by) == ("processing", 1, "scheduler-2")


def test_claim_that_is_not_committed_is_made_again_and_sent_once():
    """The commit fails, as a trigger may have it, or the connection: nothing was claimed."""
    tasks = [new_task() for _ in range(3)]
    replies = [reply_to(request).dump() for request in claimed()]
    with commits_fail("orchestration_attempt", "INSERT", "23514", times=1):
        scheduler.run_once("scheduler-1", replies, [])
    assert [states(task) for task in tasks] == 3 * [{"hello": "processed", "again": "processing"}]
    stored = Step.objects.filter(name="again").values_list("id", "attempt")
    assert Counter((request.step, request.attempt) for request in sent()) == Counter(stored)
