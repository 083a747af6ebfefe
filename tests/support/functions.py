"""Functions of Django's Tasks, for the tests of the engine's backend."""

from pathlib import Path
from threading import Event

from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django_tasks import task

from orchestration.api import Rejected, Transient

FAILURES = []  # what `fail` raises, one after the other


@task
def add(number, other, *, to=0):
    return number + other + to


@task(by_hand=True)
def by_hand():
    return "done"


@task(queue_name="mail", priority=5)
def write(name):
    """Write a row, as a function that works with the database."""
    return Group.objects.create(name=name).id


@task
async def later(name):
    group = await Group.objects.acreate(name=name)
    return await sync_to_async(lambda: [group.name, group.id is not None])()


@task(takes_context=True)
def attempt(context):
    if context.attempt < 3:
        raise Transient("not_yet")
    return {"attempt": context.attempt, "id": context.task_result.id}


@task
def fail(text):
    raise FAILURES.pop(0) if FAILURES else ValueError(text)


@task(idempotent=True)
def fail_at_first():
    if FAILURES:
        raise FAILURES.pop(0)
    return "done"


@task
def refuse():
    raise Rejected("not_today", "come back tomorrow")


@task
def unwritable():
    return object()


@task
def note_and_hang(path):
    """Leave a line in a file, and never return."""
    with Path(path).open("a") as notes:
        notes.write("called\n")
    Event().wait()


@task(idempotent=True)
def note_and_hang_at_first(path):
    first = not Path(path).exists()
    with Path(path).open("a") as notes:
        notes.write("called\n")
    if first:
        Event().wait()


def plain():
    """Not a task: it must not be called."""
    raise AssertionError("called")
