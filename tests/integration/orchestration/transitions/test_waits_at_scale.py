"""What waits for days costs nothing: looks for what is due go along an index, however much waits."""

import pytest
from django.db import connection

from orchestration import supervisor
from orchestration.cluster import leader_election
from orchestration.cluster.leader_memory import Memory
from orchestration.models import Attempt, Event, Incident, Wait
from orchestration.supervision import duties
from orchestration.transitions import looks
from orchestration.workers import scheduler_duties
from tests.support.engine import claimed, new_task, staff
from tests.support.plans import analyse, spent

pytestmark = pytest.mark.django_db
MANY = 5_000
# Tasks that wait for a person, and as many for a service, for three days.
FILL = f"""
WITH tasks AS (
    INSERT INTO orchestration_task (id, workflow, reference, state, priority, fairness_key, data, reply_to,
        owner_application, statuses, overdue, complete_by, clock_jumps, created_at, notify_steps, label,
        contact, value, currency)
    SELECT gen_random_uuid(), 'greet', 'wait-' || n, 'processing', 0, '', '{{"name": "Ada"}}', '', '',
        0, false, clock_timestamp() + interval '9 days', 0, clock_timestamp(), false, '', '', 0, ''
    FROM generate_series(1, {MANY}) AS n RETURNING id
), steps AS (
    INSERT INTO orchestration_step (task_id, name, direction, agent, action, after, request,
        process_state, failure_count, attempt, generation, priority, fairness_key, turn, outcome,
        error_code, error_message, undo_action, irreversible, result)
    SELECT id, 'hello', 'do', 'greeter', 'greet', '{{}}', '{{}}', 'awaiting', 0, 1, 1, 0, '', 0, 'later',
        '', '', '', '', '{{}}'
    FROM tasks RETURNING id, task_id
)
INSERT INTO orchestration_wait (step_id, task_id, agent, external_id, person, signal, awaited_at, ends_by,
    fixed, due_at, look, look_at, looks, asked_last, reminded)
SELECT id, task_id, 'greeter', 'pi_' || id, '', '', clock_timestamp(), clock_timestamp() + interval '3 days',
    false, clock_timestamp() + interval '3 days', 60, clock_timestamp() + interval '1 day', 0, false, 0
FROM steps
"""


def test_what_waits_costs_a_sweep_and_a_claim_nothing():
    staff()
    memory = Memory()
    leadership = leader_election.acquire("supervisor-1")
    supervisor.sweep(leadership, memory)
    new_task()
    acts = {
        "look": lambda: duties.is_anything_due(supervisor.DUTIES),
        "sweep": lambda: supervisor.sweep(leadership, memory),
        "claim": claimed,
        "duties": scheduler_duties.run,
    }
    before = {name: spent(act)[1] for name, act in acts.items()}
    with connection.cursor() as cursor:
        cursor.execute(FILL)
    analyse("orchestration_step", "orchestration_wait", "orchestration_task")
    after = {name: spent(act)[1] for name, act in acts.items()}
    assert {
        name: after[name] - before[name] for name in acts if after[name] > before[name] + 10
    } == {}
    supervisor.sweep(leadership, memory)
    assert not any(model.objects.exists() for model in (Attempt, Event, Incident))
    assert Wait.objects.filter(looks=0).count() == MANY
    assert all(before.values())
    assert spent(scheduler_duties.run)[0] == 1


def test_looks_of_many_read_a_tenth_of_the_window():
    new_task()
    with connection.cursor() as cursor:
        cursor.execute(FILL)
        cursor.execute("UPDATE orchestration_wait SET look_at = clock_timestamp()")
    analyse("orchestration_step", "orchestration_wait", "orchestration_task")
    assert spent(lambda: looks.look(["greeter"]))[1] < 500
    assert len(looks.look(["greeter"])["greeter"]) == 10
