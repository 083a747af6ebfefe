"""Many who fail, mend and count at once: nobody waits in a circle, and nothing is miscounted."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from drill.waiting import wait_for
from orchestration import audit, dead_letters, incidents, queues
from orchestration.models import DeadLetter, Incident, Policy, Step
from orchestration.models.fields import DatabaseNow
from orchestration.scheduler import turn
from orchestration.transitions.resubmit import resubmit_all
from tests.engine import claimed, new_task, reply_to, staff

pytestmark = pytest.mark.django_db(transaction=True)
CODES = ("closed", "limit", "no_route")
TASKS = 150
SCHEDULERS = 4


def alone(work, *given):
    """Do `work` on a connection of this thread's own."""
    try:
        return work(*given)
    finally:
        connection.close()


def schedule(requests, turned):
    """Record rejections of all causes, batch by batch, and claim; then what had to come back."""
    codes = CODES[::-1] if turned else CODES
    for start in range(0, len(requests), 9):
        batch = requests[start : start + 9]
        replies = [
            reply_to(one, "rejected", code=codes[place % 3], message=f"card {one.step}")
            for place, one in enumerate(batch)
        ]
        turn("scheduler-x", [reply.dump() for reply in replies], ())


def all_recorded():
    """Record what came back, as another turn had a row that it needs."""
    DeadLetter.objects.update(retry_at=DatabaseNow())
    dead_letters.send_back(TASKS)
    messages = [one for one in queues.take(queues.SCHEDULER, TASKS) if one != queues.LOOK]
    turn("scheduler-x", messages, ())
    return not messages and not DeadLetter.objects.exists()


def mend(over):
    """Resubmit whatever is in error, until the others are through."""
    count = 0
    while not over.is_set():
        failed = Step.objects.filter(process_state="error").values_list("id", "attempt")[:20]
        answers = resubmit_all(dict(failed), actor="ann", reason="mended", operation=None)
        count += sum(refusal is None for refusal in answers.values())
    return count


def fold(over):
    """Add up, as the leader and one who still thinks that it leads do."""
    while not over.is_set():
        incidents.fold("supervisor-1")


def test_nobody_waits_in_a_circle_and_every_failure_is_counted_once():
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
            for one in schedulers:
                one.result(60)
            wait_for(all_recorded, "what came back is recorded", 30)
        finally:
            over.set()
        resubmitted = others[2].result(30)
        for one in others[:2]:
            one.result(30)
    incidents.fold("supervisor-1")
    counts = Incident.objects.values_list("code", "failures", "tasks", "suffering")
    assert {code for code, *_ in counts} == set(CODES)
    assert sum(failures for _, failures, *_ in counts) == TASKS
    assert sum(suffering for *_, suffering in counts) == TASKS - resubmitted
    audit.fill(audit.prepare())
    assert [one for one in audit.find() if one.invariant == 14] == []
