"""Each function removes one guard from every layer of the code that has it."""

import json
import os
import time
import traceback
from importlib import import_module
from types import SimpleNamespace
from uuid import uuid4

from django.apps import AppConfig

from sasweb.stack import folders
from tests.support.unlocked import CLAIM_LOCKS, unguard, unlock

ORDER = "sabotage"  # the file in a stack's folder that names the guard to remove


def fence():
    """Accept a reply to any attempt, any number of times."""
    replies = import_module("orchestration.transitions.replies")
    assert replace(replies, "refuse_reply", lambda *reply: None)
    ended = import_module("orchestration.transitions.moves").ENDED
    guards = (
        "\n    AND (s.process_state, s.attempt, s.generation) = (r.state, r.attempt, r.generation)",
        "\n    AND s.locked_by IS NOT NULL",
        " WHERE s.locked_by IS NOT NULL",
    )
    for guard in guards:
        assert guard in ended.statement
        ended.statement = ended.statement.replace(guard, "")
    ended.statement = ended.statement.replace(
        "s.locked_by, r.by", "coalesce(s.locked_by, 'none'), r.by"
    )


def key():
    """Give each dispatch a new key, instead of one key per step."""
    claim = import_module("orchestration.transitions.claim")
    step_key = replace(claim, "step_key", lambda *parts: f"{step_key(*parts)}:{uuid4().hex}")


def claim():
    """Claim without locks and versions, with a pause between reading and writing: claims overlap."""
    unlock(*CLAIM_LOCKS)
    unguard()
    module = import_module("orchestration.transitions.claim")

    def slowly(taken, by):
        if taken:
            time.sleep(0.1)
        return writing(taken, by)

    writing = replace(module, "_writing", slowly)


def outbox():
    """Keep an accepted order only on Redis until the submission process takes it."""
    from orchestration import submission
    from orchestration.applications import submissions
    from orchestration.messaging import queues
    from orchestration.models import Submission

    place = "sabotaged:submissions"

    def push(statement, rows):
        assert statement == submissions.POST
        for values in zip(*rows.values(), strict=True):
            posted = dict(zip(rows, values, strict=True))
            queues.connection().rpush(place, json.dumps(posted))
        return []

    def take(limit):
        taken = take_rows(limit)
        messages = queues.connection().lpop(place, limit) or []
        Submission.objects.bulk_create(Submission(**json.loads(message)) for message in messages)
        return taken + take_rows(limit)

    replace(submissions, "prepared", SimpleNamespace(run=push))
    take_rows = replace(submission, "take", take)


def replace(owner, name, new):
    """Replace an existing attribute; return the old one."""
    old = getattr(owner, name)
    setattr(owner, name, new)
    return old


GUARDS = {guard.__name__: guard for guard in (fence, key, claim, outbox)}


def obey():
    """Remove the guard that the order names, if there is an order; once in a process and its forks."""
    order = folders.data_dir() / ORDER
    if order.exists() and (remove := GUARDS.pop(order.read_text(), None)):
        try:
            remove()
        except BaseException:  # noqa: BLE001 - any
            traceback.print_exc()
            os._exit(1)  # after a fork Python only prints it, and half of the guard would be there


class Saboteur(AppConfig):
    name = "tests.stack.sabotage"

    def ready(self):
        """Have processes obey as they start; most are forks of one that has begun already."""
        obey()
        os.register_at_fork(after_in_child=obey)
