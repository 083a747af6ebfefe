"""A worker that is killed while it calls a function: what is known of the call afterwards."""

import os
import subprocess
import sys

import pytest

from drill.waiting import wait_for
from orchestration import conf
from orchestration.housekeeping import agent_rows
from orchestration.models import Step
from orchestration.models.fields import DatabaseNow
from orchestration.workers import jobs
from tests.support import functions
from tests.support.engine import staff, sweep
from tests.support.operators import LEADER
from tests.support.together import database_url

pytestmark = pytest.mark.django_db(transaction=True)
HOST = (sys.executable, "-m", "tests.integration.orchestration.functions.host", "tasks.default")


@pytest.mark.parametrize(
    ("function", "calls", "ended"),
    [
        (functions.note_and_hang, 1, ("error", "may_have_run")),
        (functions.note_and_hang_at_first, 2, ("processed", "")),
    ],
)
def test_killed_worker_leaves_a_call_in_doubt(tmp_path, monkeypatch, function, calls, ended):
    monkeypatch.setattr(conf, "INBOX_IDLE_S", 0.01)  # seconds until a job ends
    agent_rows.ensure_agents()
    notes = tmp_path / "calls"
    result = function.enqueue(str(notes))
    jobs.take_submissions()
    jobs.schedule()
    environment = {**os.environ, "DATABASE_URL": database_url()}
    with subprocess.Popen(HOST, env=environment) as worker:
        try:
            # the line itself: a file that is just opened is there before it
            wait_for(lambda: notes.exists() and notes.read_text(), "the function has been called")
        finally:
            worker.kill()
    staff()
    Step.objects.update(complete_by=DatabaseNow())  # its time is over
    assert sweep(LEADER)["retried"] == 1
    Step.objects.update(run_after=None)
    jobs.schedule()
    jobs.call_agent("tasks.default")  # another worker
    jobs.schedule()
    step = Step.objects.get()
    assert (step.process_state, step.error_code) == ended
    assert len(notes.read_text().splitlines()) == calls
    result.refresh()
    assert result.attempts == 2
