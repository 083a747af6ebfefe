"""Work of higher priority goes first, and nothing waits without end behind it (P16)."""

import re
from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import connection

from orchestration import api, conf, submission
from orchestration.applications.submissions import POST
from orchestration.database import sql
from orchestration.decisions.fairness import for_aged
from orchestration.models import Hold, Policy, Step, Submission, Task
from orchestration.models.fields import DatabaseNow
from orchestration.transitions.candidates import aged
from orchestration.transitions.replies import record
from tests.support.engine import claimed, new_task, reply_to, step_of
from tests.support.operators import browser, person
from tests.support.plans import looking, plan

pytestmark = pytest.mark.django_db
BODY = "SELECT prosrc FROM pg_proc WHERE proname = %s"  # of a function in SQL
# rows of the inbox that this transaction has read
READ = """SELECT coalesce(seq_tup_read + idx_tup_fetch, 0) FROM pg_stat_xact_user_tables
WHERE relname = 'orchestration_submission'"""
LONG_AGO = DatabaseNow() - timedelta(seconds=61)


def wait_long(*tasks):
    Step.objects.filter(task__in=tasks, process_state="pending").update(pending_since=LONG_AGO)


def window(places):
    Policy.objects.filter(agent="greeter").update(window=places)


def stream(count):
    """Add urgent tasks, so that always more than one claim wait."""
    for _ in range(count):
        new_task(priority=5)


def claims_until(task, places, most):
    """Claim and answer, with urgent tasks coming in as fast; return how many claims it took."""
    window(places)
    for number in range(1, most + 1):
        stream(places + 1 - Step.objects.filter(process_state="pending", priority=5).count())
        requests = claimed()
        assert len(requests) == places
        record([reply_to(request) for request in requests])
        if task.id in {request.task for request in requests}:
            return number
    return None


class TestSteps:
    def test_long_waiting_step_is_claimed_despite_a_stream_of_urgent_ones(self):
        low = new_task(priority=-1)
        wait_long(low)
        assert claims_until(low, places=10, most=1) == 1

    def test_of_one_place_at_a_time_it_gets_its_share_too(self):
        low = new_task(priority=-1)
        wait_long(low)
        # of 200 claims none is its own with a probability of 0.9 to the power of 200: never
        assert claims_until(low, places=1, most=200)

    def test_until_then_it_waits(self):
        low = new_task(priority=-1)
        assert claims_until(low, places=10, most=20) is None

    def test_the_time_is_the_policys(self):
        low = new_task(priority=-1)
        Policy.objects.update(aged_after=0)
        assert claims_until(low, places=10, most=1) == 1

    def test_the_urgent_ones_keep_nine_places_of_ten(self):
        old = [new_task() for _ in range(30)]
        wait_long(*old)
        stream(30)
        window(20)
        tasks = Task.objects.filter(id__in=[request.task for request in claimed()])
        assert sorted(tasks.values_list("priority", flat=True)) == [0] * 2 + [5] * 18

    def test_those_that_have_waited_the_longest_are_first(self):
        old = [new_task() for _ in range(6)]
        wait_long(*old)
        oldest = [old[4], old[1]]
        ages = timedelta(hours=2), timedelta(hours=1)
        for task, age in zip(oldest, ages, strict=True):
            Step.objects.filter(task=task, name="hello").update(pending_since=DatabaseNow() - age)
        stream(30)
        window(20)
        first = {request.task for request in claimed()} & {task.id for task in old}
        assert first == {task.id for task in oldest}

    def test_a_full_line_of_one_priority_is_claimed_whole(self):
        """No place is left over where fewer than their share have waited for long."""
        wait_long(new_task())
        for _ in range(30):
            new_task()
        window(30)
        assert len({request.step for request in claimed()}) == 30

    def test_held_ones_are_looked_past(self):
        held, low = new_task(), new_task(priority=-1)
        wait_long(held, low)
        Step.objects.filter(task=held, name="hello").update(pending_since=LONG_AGO - timedelta(1))
        Hold.objects.create(scope="task", cause="hand", task=held, actor="ann", reason="wait")
        assert claims_until(low, places=10, most=1) == 1
        assert step_of(held).process_state == "pending"

    def test_the_longest_waiting_are_read_from_an_index(self):
        for _ in range(300):
            new_task()
        nodes = plan(aged(), looking(20))
        assert ("Index Scan", "step_waiting") in nodes

    def test_a_page_says_that_it_waits_for_urgent_ones(self):
        low = new_task()
        stream(3)
        client = browser(person("olga", "operate"))
        assert "waiting, behind 3 others with a higher priority" in (
            client.get(f"/ops/tasks/{low.id}/").content.decode()
        )

    @pytest.mark.parametrize("seconds", [-1, 700_000])
    def test_a_time_out_of_bounds_is_refused(self, seconds):
        policy = Policy.objects.get(agent="greeter")
        policy.aged_after = seconds
        with pytest.raises(ValidationError, match="Steps wait for long after 0 seconds"):
            policy.full_clean()


class TestInbox:
    def post(self, count, priority, name):
        api.submit_many(
            [
                api.Posting(
                    workflow="greet", reference=f"{name}-{n}", data={"name": "A"}, priority=priority
                )
                for n in range(count)
            ]
        )

    def taken(self):
        return set(Task.objects.values_list("reference", flat=True))

    def test_higher_priority_is_taken_first(self):
        self.post(5, 0, "usual")
        self.post(2, -1, "low")
        self.post(5, 5, "urgent")
        assert submission.take(5) == 5
        assert self.taken() == {f"urgent-{n}" for n in range(5)}
        submission.take(5)
        assert self.taken() == {f"{name}-{n}" for name in ("urgent", "usual") for n in range(5)}

    def test_long_waiting_item_is_taken_despite_a_stream_of_urgent_ones(self):
        self.post(2, -1, "low")
        Submission.objects.update(
            created_at=DatabaseNow() - timedelta(seconds=conf.AGED_AFTER_S + 1)
        )
        self.post(40, 5, "urgent")
        assert submission.take(20) == 22
        assert {"low-0", "low-1"} <= self.taken()

    def test_until_then_it_waits(self):
        self.post(2, -1, "low")
        self.post(40, 5, "urgent")
        assert submission.take(20) == 20
        assert not {"low-0", "low-1"} & self.taken()

    def test_where_a_line_of_the_inbox_stands_is_two_probes(self):
        for key in "abc":
            api.submit_many(
                [
                    api.Posting(
                        workflow="greet",
                        reference=f"{key}{n}",
                        data={"name": "A"},
                        priority=n % 3,
                        fairness_key=key,
                    )
                    for n in range(300)
                ]
            )
        with connection.cursor() as cursor:
            cursor.execute(BODY, ["orchestration_submit"])
            ((body,),) = cursor.fetchall()
        arrays = re.search(r"unnest\(workflows,[^)]*\)", body)[0]
        row = "ARRAY['greet'], ARRAY['z'], ARRAY['{}'::jsonb], ARRAY[''], ARRAY['']"
        about = "NULL::text[], NULL::text[]"
        row_of_arrays = f"unnest({row}, %(priorities)s::smallint[], %(keys)s::text[], {about})"
        (inserting,) = re.findall(r"INSERT.*", body, re.DOTALL)  # behind the look at who calls
        nodes = plan(inserting.replace(arrays, row_of_arrays), {"priorities": [0], "keys": ["a"]})
        assert {"submission_due", "submission_key"} <= {name for _, name in nodes}
        read = [kind for kind, name in nodes if name and name.startswith("submission")]
        assert all("Index" in kind for kind in read)

    def test_a_batch_reads_where_its_lines_stand_once_for_each(self):
        """The plan is kept from when the table was empty, and made without the settings of a turn."""

        def read():
            with connection.cursor() as cursor:
                cursor.execute(READ)
                return cursor.fetchone()[0]

        values = {
            "workflow": ["greet"] * 300,
            "data": ["{}"] * 300,
            "reply_to": [""] * 300,
            "owner_application": [""] * 300,
            "priority": [0, 1] * 150,
            "fairness_key": ["a", "b", "c"] * 100,
            "about_workflow": [None] * 300,
            "about_reference": [None] * 300,
        }
        reads = []
        for batch in range(3):
            before = read()
            sql.run(POST, values | {"reference": [f"{batch}-{n}" for n in range(300)]})
            reads.append(read() - before)
        assert max(reads) <= 2 * 6
        assert Submission.objects.count() == 900

    def test_posting_is_planned_once_with_any_settings_of_the_caller(self):
        """A plan for each call would be three quarters of it; its statements show only in the settings."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT proconfig FROM pg_proc WHERE proname = 'orchestration_submit'")
            ((settings,),) = cursor.fetchall()
        assert {"plan_cache_mode=force_generic_plan", "enable_seqscan=off"} <= set(settings)

    def test_one_that_fails_and_one_that_waits_for_long_do_not_meet(self):
        """An old one that is put off is a retry, and has not waited."""
        self.post(1, -1, "low")
        Submission.objects.update(
            created_at=DatabaseNow() - timedelta(days=1), retry_at=DatabaseNow() + timedelta(days=1)
        )
        self.post(40, 5, "urgent")
        assert submission.take(20) == 20


def test_a_share_of_places_is_that_on_average():
    assert for_aged(200, 0.1) == 20
    assert {for_aged(1, 0.1) for _ in range(500)} == {0, 1}
    assert {for_aged(15, 0.1) for _ in range(100)} == {1, 2}
    assert for_aged(0, 0.1) == 0
