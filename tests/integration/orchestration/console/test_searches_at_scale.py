"""Searches by steps: what they find, and what they read in an outage that statistics do not show yet."""

from datetime import timedelta
from itertools import product
from uuid import uuid4

import pytest
from django.db import connection, transaction

from orchestration.console.queries import task_filters
from orchestration.console.queries.search_query import read
from orchestration.models import Step, Task
from orchestration.models.fields import DatabaseNow
from orchestration.transitions.create import NewTask, create
from orchestration.transitions.holds import hold
from tests.support.audit_rows import no_route, orders
from tests.support.engine import claimed, in_error, new_task, run_to_end, step_of, without_triggers
from tests.support.plans import analyse, cost

pytestmark = pytest.mark.django_db

ENDED, WAITING = 2_000, 500


STATES = [
    "",
    *(f"state:{name}" for name in ("error", "pending", "processing", "processed", "undoing")),
]
TROUBLES = ["", "is:overdue", "is:retrying", "is:held"]
STEPS = [
    "agent:greeter",
    "step:capture_payment",
    "attempts:>0",
    "error:r",
    "agent:payment value:>0",
]


@pytest.mark.parametrize("trouble", TROUBLES)
def test_count_and_page_have_what_the_search_means(trouble):
    orders(60, no_route()).write()
    in_error()
    tasks = [new_task() for _ in range(6)]
    claimed()
    tasks += [new_task() for _ in range(6)]
    waiting = Step.objects.filter(process_state="pending", task__in=tasks).order_by("id")
    steps = list(waiting.values_list("id", flat=True))
    Step.objects.filter(id__in=steps[::2]).update(
        attempt=1, run_after=DatabaseNow() + timedelta(hours=1)
    )
    Task.objects.filter(id__in=[task.id for task in tasks[::2]]).update(overdue=True)
    hold(agent="greeter", actor="olga", reason="they move")
    matches = 0
    for state, step in product(STATES, STEPS):
        query = read({"q": f"{state} {trouble} {step}"}, personal=True).query
        (filters,) = query.alternatives
        expected = sorted(task_filters.matching(filters).values_list("id", flat=True))
        assert sorted(task_filters.ids(query)) == expected
        assert task_filters.page(query, 200) == expected[::-1]
        assert task_filters.page(query, 200, oldest_first=True) == expected
        assert (
            task_filters.page(query, 2, newer=expected[0] if expected else None)
            == expected[1:][-2:][::-1]
        )
        assert task_filters.count(query) == len(expected)
        matches += len(expected)
    assert matches > 0


@pytest.fixture
def outage():
    """Many tasks that wait and are overdue, since after the tables were last analyzed."""
    with connection.cursor() as cursor:  # no pages that earlier tests have left
        cursor.execute("TRUNCATE orchestration_task, orchestration_step CASCADE")
    run_to_end(task := new_task())
    step = step_of(task)
    with without_triggers():
        copies = []
        for number in range(ENDED):
            task.pk, task.reference = uuid4(), f"old-{number}"
            copies.append(
                Task(
                    **{
                        column.attname: getattr(task, column.attname)
                        for column in Task._meta.concrete_fields
                    }
                )
            )
        Task.objects.bulk_create(copies)
        fields = [
            column.attname
            for column in Step._meta.concrete_fields
            if column.attname not in {"id", "task_id"}
        ]
        values = {name: getattr(step, name) for name in fields}
        Step.objects.bulk_create(Step(task_id=copy.pk, **values) for copy in copies)
    analyse("orchestration_task", "orchestration_step")
    with transaction.atomic():
        create(
            [
                NewTask(workflow="greet", reference=f"new-{number}", data={"name": "Ada"})
                for number in range(WAITING)
            ]
        )
    tasks = Task.objects.filter(reference__startswith="new-")
    tasks.update(overdue=True)
    Step.objects.filter(task__in=tasks, process_state="pending").update(
        error_code="timeout", attempt=1, run_after=DatabaseNow() + timedelta(hours=1)
    )


@pytest.mark.usefixtures("outage")
def test_search_for_two_things_that_became_many_reads_each_once():
    for query in ("is:overdue", "is:retrying", "state:pending"):
        search = read({"q": f"error:timeout {query}"}, personal=True).query
        for look in (task_filters.count, lambda query: task_filters.page(query, 51)):
            _, pages = cost(lambda search=search, look=look: look(search))
            assert pages < 10 * WAITING, query
        assert task_filters.count(search) == WAITING


@pytest.mark.usefixtures("outage")
def test_page_of_what_waits_does_not_read_all_that_waits(monkeypatch):
    query = read({"q": "error:timeout"}, personal=True).query
    # ids of the old tasks are of another kind: most come after those of the new ones
    expected = sorted(task_filters.ids(query))[:51]

    def look():
        assert task_filters.page(query, 51, oldest_first=True) == expected

    for tasks, statements in ((200, 1), (50, 2)):
        monkeypatch.setattr(task_filters, "NEXT", tasks)
        assert cost(look)[0] == statements
