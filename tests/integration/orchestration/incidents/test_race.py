"""Failures, resubmits and counts at the same time: no deadlock, and no wrong count."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from drill.waiting import wait_for
from orchestration.assurance.audit import runner, snapshot
from orchestration.dead_letters import capture
from orchestration.incidents import aggregation
from orchestration.messaging import queues
from orchestration.models import DeadLetter, Incident, Policy, Step
from orchestration.models.fields import DatabaseNow
from orchestration.scheduler import run_once
from orchestration.transitions.resubmit import resubmit_all
from tests.support.engine import claimed, new_task, reply_to, staff

pytestmark = pytest.mark.django_db(transaction=True)
CODES = ("closed", "limit", "no_route")
TASKS = 150
SCHEDULERS = 4


def alone(work, *arguments):
    """Do `work` on a connection of this thread's own."""
    try:
        return work(*arguments)
    finally:
        connection.close()


def schedule(requests, turned):
    """Record rejections of all causes, batch by batch, and claim; then what had to come back."""
    codes = CODES[::-1] if turned else CODES
    for start in range(0, len(requests), 9):
        batch = requests[start : start + 9]
        replies = [
            reply_to(request, "rejected", code=codes[place % 3], message=f"card {request.step}")
            for place, request in enumerate(batch)
        ]
        run_once("scheduler-x", [reply.dump() for reply in replies], ())


def all_recorded():
    """Record what came back, as another turn had a row that it needs."""
    DeadLetter.objects.update(retry_at=DatabaseNow())
    capture.return_due(TASKS)
    messages = [raw for raw in queues.take(queues.SCHEDULER, TASKS) if raw != queues.LOOK]
    run_once("scheduler-x", messages, ())
    return not messages and not DeadLetter.objects.exists()


def mend(over):
    """Resubmit all steps in error until the others have ended."""
    count = 0
    while not over.is_set():
        failed = Step.objects.filter(process_state="error").values_list("id", "attempt")[:20]
        answers = resubmit_all(dict(failed), actor="ann", reason="mended", operation=None)
        count += sum(refusal is None for refusal in answers.values())
    return count


def fold(over):
    """Add up, as the leader and one who still thinks that it leads do."""
    while not over.is_set():
        aggregation.aggregate("supervisor-1")


def test_concurrent_failures_do_not_deadlock_and_count_once():
    staff()
    Policy.objects.filter(agent="greeter").update(window=TASKS)
    for _ in range(TASKS):
        new_task()
    requests = claimed()
    assert len(requests) == TASKS
    over = threading.Event()
    with ThreadPoolExecutor(SCHEDULERS + 3) as pool:
        others = [pool.submit(alone, work, over) for work in (fold, fold, mend)]
        schedulers = [
            pool.submit(alone, schedule, requests[n::SCHEDULERS], n % 2) for n in range(SCHEDULERS)
        ]
        try:
            for future in schedulers:
                future.result(60)
            wait_for(all_recorded, "what came back is recorded", 30)
        finally:
            over.set()
        resubmitted = others[2].result(30)
        for future in others[:2]:
            future.result(30)
    aggregation.aggregate("supervisor-1")
    counts = Incident.objects.values_list("code", "failures", "tasks", "open_tasks")
    assert {code for code, *_ in counts} == set(CODES)
    assert sum(failures for _, failures, *_ in counts) == TASKS
    assert sum(open_tasks for *_, open_tasks in counts) == TASKS - resubmitted
    snapshot.fill(snapshot.prepare())
    assert [breach for breach in runner.find() if breach.invariant == 14] == []
