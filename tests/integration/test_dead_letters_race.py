"""Two act on dead letters at the same moment: each is acted on once, and no retry is lost."""

import threading
from contextlib import contextmanager

import pytest
from django.db import Error, connection, transaction

from drill.waiting import wait_for
from orchestration import requeue
from orchestration.models import Event, Submission
from orchestration.models.fields import DatabaseNow
from orchestration.requeue import Kind, Wanted
from tests.database import another

pytestmark = pytest.mark.django_db(transaction=True)


def refused(reference):
    return Submission.objects.create(
        workflow="greet", reference=reference, data={}, refused_at=DatabaseNow(), reason="no"
    )


def waits_for_a_lock():
    with another() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                       "AND datname = current_database()")  # fmt: skip
        return cursor.fetchone()[0] > 0


@contextmanager
def beside(act):
    """Begin `act` in a transaction of its own, which waits for this block's; give its results."""
    results = []

    def run():
        try:
            results.append(act())
        except Error as error:
            results.append(error)
        finally:
            connection.close()

    other = threading.Thread(target=run)
    with transaction.atomic():
        yield results
        other.start()
        wait_for(waits_for_a_lock, "the other waits for a lock")
    other.join(10)


def retry(**wanted):
    return requeue.retry(Wanted(kind=Kind.SUBMISSION, **wanted), by="bob")


def test_of_two_of_one_reference_that_two_retry_one_is_passed_over():
    one, two = refused("7"), refused("7")
    with beside(lambda: retry(id=two.id)) as results:
        assert retry(id=one.id) == 1
    assert results == [0]
    assert Submission.objects.get(refused_at=None).id == one.id


def test_one_that_is_posted_meanwhile_costs_a_bulk_retry_only_its_twin():
    for number in range(10):
        refused(str(number))
    with beside(retry) as results:
        Submission.objects.create(workflow="greet", reference="4", data={})
    assert results == [9]
    assert Event.objects.filter(kind="retried").count() == 9
    assert not Submission.objects.exclude(reference="4").exclude(refused_at=None).exists()


def test_what_was_closed_meanwhile_is_not_opened_again():
    one = refused("7")
    with beside(lambda: retry(id=one.id)) as results:
        requeue.close(Wanted(kind=Kind.SUBMISSION, id=one.id), by="ann", reason="by phone")
    assert results == [0]
    one.refresh_from_db()
    assert one.closed_at is not None
    assert [event.kind for event in Event.objects.all()] == ["closed"]
