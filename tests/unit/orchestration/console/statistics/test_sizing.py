"""The calculator: what a load takes, and what it says to add."""

from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import call_command

from orchestration.console.statistics.sizing import BUSY, ENVELOPE, MEASURED, Load, size
from orchestration.messaging.messages import Request


def test_cores_grow_with_tasks_and_steps():
    sizing = size(Load(tasks_per_second=100, steps=5))
    assert sizing.cores["Postgres"] == pytest.approx(0.1 * MEASURED.postgres.of(5) / BUSY)
    assert size(Load(tasks_per_second=200, steps=5)).cores["Postgres"] == pytest.approx(
        2 * sizing.cores["Postgres"]
    )
    assert size(Load(tasks_per_second=100, steps=6)).cores["Postgres"] > sizing.cores["Postgres"]


def test_disk_is_of_the_average_load_and_the_retention():
    peak = size(Load(tasks_per_second=100, retention_days=30))
    assert peak.disk == pytest.approx(peak.disk_per_month)
    assert size(Load(tasks_per_second=100, average=10, retention_days=30)).disk == pytest.approx(
        peak.disk / 10
    )
    assert size(Load(tasks_per_second=100, payload=1_500)).bytes_per_task == pytest.approx(
        peak.bytes_per_task + 1_000 * 6
    )


def test_window_and_workers_follow_latency():
    sizing = size(Load(tasks_per_second=500, steps=5, latency=2.0, slots=100))
    assert (sizing.window, sizing.agent_workers) == (1_500, 15)
    assert size(Load(tasks_per_second=1)).agent_workers == 2  # one may stop


def test_service_bounds_the_tasks():
    sizing = size(Load(tasks_per_second=500, steps=6, agents=3, calls_per_second=100))
    assert sizing.tasks_per_second == 50  # each agent has two steps of a task
    assert "The service bounds it" in sizing.advice[0]


@pytest.mark.parametrize(
    ("load", "word"),
    [
        ({"tasks_per_second": 40_000}, "installations of their own"),
        ({"tasks_per_second": 40_000}, "several agents"),
        ({"tasks_per_second": 40_000}, "One Redis"),
        ({"tasks_per_second": 5_000}, "PgBouncer"),
        ({"tasks_per_second": 5_000}, "machine of its own"),
        ({"tasks_per_second": 5_000}, "shorter time"),
    ],
)
def test_what_to_add_is_named(load, word):
    assert any(word in sentence for sentence in size(Load(**load)).advice)
    assert size(Load(tasks_per_second=1)).advice == []


def test_request_is_as_large_as_is_calculated():
    request = Request(
        step=10**9, task=uuid4(), name="authorize_payment", attempt=1, action="authorize",
        key=f"{uuid4()}:authorize_payment:do:1", reference=str(uuid4()), complete_by=1.8e9 + 0.123456,
        call_timeout=6.0, tries=2, payload={}, mode="do", generation=1, dispatch=10**15, in_doubt=False,
    )  # fmt: skip
    assert 0.7 * ENVELOPE < len(request.dump()) < ENVELOPE


def test_command_prints_every_figure():
    out = StringIO()
    call_command("size", "--tasks-per-second", "500", "--steps", "5", stdout=out)
    text = out.getvalue()
    for name in ("cores of Postgres", "connections", "WAL", "disk", "Redis", "one gate"):
        assert name in text
