"""Users with permissions, their HTTP clients, and failures for them to act on."""

from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from orchestration import registry
from orchestration.cluster import leader_election
from orchestration.cluster.leader_election import Leadership
from orchestration.messaging import queues
from orchestration.models import Policy, Worker
from orchestration.transitions.replies import record
from tests.support.engine import claimed, reply_to, staff, sweep

LEADER = Leadership(holder="supervisor-1", epoch=3)


def person(name, *permissions, **flags) -> User:
    user = User.objects.create_user(name, password="correct horse", **flags)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return user


def browser(user=None) -> Client:
    client = Client()
    if user:
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def operator(name="ann") -> Client:
    return browser(person(name, "operate", "resubmit"))


def press(client, step, *, attempt=None, reason="it is repaired"):
    """Send the form that the page of a failed step shows."""
    return client.post(
        reverse("ops:resubmit", args=[step.id]),
        {"attempt": step.attempt if attempt is None else attempt, "reason": reason},
    )


def fail(requests, outcome="transient", *, threshold=5, **fields) -> None:
    """Record failed attempts, then sweep."""
    Policy.objects.filter(agent="greeter").update(failure_threshold=threshold)
    record([reply_to(request, outcome, **fields) for request in requests])
    staff()
    sweep(LEADER)


def gave_up(task, outcome="unknown"):
    """Return the first step of a task after a failure past the threshold."""
    fail([request for request in claimed() if request.task == task.id], outcome, threshold=1)
    return task.steps.get(name="hello")


def staffed():
    """Let everything that the engine needs be alive."""
    for queue in {*queues.HANDLERS, *registry.agents, "status.shop", *leader_election.NAMES}:
        Worker.objects.create(instance=f"{queue}-1", queue=queue, host="h", pid=1)
    led()


def led():
    """Have a supervisor and a housekeeper lead."""
    for name in leader_election.NAMES:
        leader_election.acquire(f"{name}-1", name=name)
