"""Two act on dead letters at the same moment: each is acted on once, and no retry is lost."""

import threading
from contextlib import contextmanager

import pytest
from django.db import Error, connection, transaction

from drill.waiting import wait_for
from orchestration.dead_letters import actions
from orchestration.dead_letters.actions import DeadLetterFilter, Kind
from orchestration.models import Event, Submission
from orchestration.models.fields import DatabaseNow
from tests.support.database import another

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


def retry(**narrowing):
    return actions.retry(DeadLetterFilter(kind=Kind.SUBMISSION, **narrowing), by="bob")


def test_concurrent_retries_of_one_reference_skip_one():
    first, two = refused("7"), refused("7")
    with beside(lambda: retry(id=two.id)) as results:
        assert retry(id=first.id) == 1
    assert results == [0]
    assert Submission.objects.get(refused_at=None).id == first.id


def test_bulk_retry_skips_only_a_reference_that_was_posted_meanwhile():
    for number in range(10):
        refused(str(number))
    with beside(retry) as results:
        Submission.objects.create(workflow="greet", reference="4", data={})
    assert results == [9]
    assert Event.objects.filter(kind="retried").count() == 9
    assert not Submission.objects.exclude(reference="4").exclude(refused_at=None).exists()


def test_letter_closed_meanwhile_is_not_reopened():
    first = refused("7")
    with beside(lambda: retry(id=first.id)) as results:
        actions.close(
            DeadLetterFilter(kind=Kind.SUBMISSION, id=first.id), by="ann", reason="by phone"
        )
    assert results == [0]
    first.refresh_from_db()
    assert first.closed_at is not None
    assert [event.kind for event in Event.objects.all()] == ["closed"]
