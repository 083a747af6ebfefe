"""GET /metrics: its permissions and its values."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from orchestration import api
from orchestration.console.statistics.histogram import buckets
from orchestration.database.clock import database_now
from orchestration.messaging import queues
from orchestration.models import Gate, Policy, StepRollUp, TaskRollUp
from tests.support.applications import application
from tests.support.database import another
from tests.support.engine import claimed, in_error, new_task
from tests.support.operators import browser, person, staffed
from tests.support.page import query_count

pytestmark = pytest.mark.django_db
ADDRESS = "/metrics"


def samples(response) -> dict[tuple[str, ...], float]:
    """Return the values by metric and labels' values."""
    assert response.status_code == 200, response.content
    return {
        (sample.name.removeprefix("sas_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(response.content.decode())
        for sample in family.samples
    }


@pytest.fixture
def scraper():
    _, token = application("prometheus", "metrics:read")
    return Client(headers={"Authorization": f"Bearer {token}"})


def test_metrics_report_the_current_state(scraper):
    staffed()
    queues.ring("greeter", [b"one", b"two"])
    Policy.objects.filter(agent="greeter").update(window=7)
    in_error()
    new_task("7")
    claimed()
    new_task()
    api.request_undo("greet", "7", actor="customer", reason="changed", id=uuid4())
    Gate.objects.filter(agent="greeter").update(state="recovering", allowance=2)
    values = samples(scraper.get(ADDRESS))
    assert values["redis_up",] == 1
    assert values["leader", "supervisor"] == values["leader", "housekeeper"] == 1
    assert values["workers", "greeter"] == 1
    assert values["messages", "greeter"] == 2
    assert values["alerts_open", "critical"] == 1
    assert values["alerts_open", "warning"] == 0
    assert values["tasks", "errors"] == 1
    assert values["tasks", "under_way"] == 2
    assert (values["gate", "greeter", "recovering"], values["gate", "greeter", "closed"]) == (1, 0)
    assert values["window", "greeter"] == 7
    assert values["in_flight", "greeter"] == 1
    assert values["waiting", "greeter"] == 1
    assert 0 <= values["waiting_oldest_seconds", "greeter"] < 60
    assert values["outbox", "submission"] == 0
    assert values["outbox", "task_request"] == 1
    assert 0 <= values["outbox_oldest_seconds", "task_request"] < 60
    assert values["hour_tasks", "processed"] == 0
    assert values["task_changes_total", "processed", "greet"] == 0
    assert values["attempts_total", "greeter", "undo", "failed", "hello", "greet"] == 0


def test_metrics_count_what_happened_today(scraper):
    now = database_now()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    spans = [midnight, midnight - timedelta(hours=2)]  # of yesterday: not counted any more
    for start in spans:
        TaskRollUp.objects.create(
            span=7200, start=start, workflow="greet", created=3, processed=2, errors=1,
            took=buckets([0.2, 90]),
        )  # fmt: skip
        for step in ("hello", "bye"):
            StepRollUp.objects.create(
                span=7200, start=start, workflow="greet", step=step, direction="do",
                agent="greeter", done=2, failed=4, took=buckets([0.01, 3]),
            )  # fmt: skip
    values = samples(scraper.get(ADDRESS))
    assert values["task_changes_total", "created", "greet"] == 3
    assert values["task_changes_total", "errors", "greet"] == 1
    assert values["task_seconds_bucket", "65.536", "greet"] == 1
    assert values["task_seconds_bucket", "0.128", "greet"] == 0
    assert values["task_seconds_bucket", "+Inf", "greet"] == 2
    assert values["attempts_total", "greeter", "do", "failed", "bye", "greet"] == 4
    assert values["attempt_seconds_bucket", "greeter", "0.016"] == 2
    assert values["attempt_seconds_bucket", "greeter", "+Inf"] == 4


def test_metrics_report_the_servers(scraper):
    with another() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT 1")
        values = samples(scraper.get(ADDRESS))
    assert 0 < values["postgres_connections",] <= values["postgres_connections_max",] == 200
    assert values["postgres_size_bytes",] > 1e6
    assert values["postgres_lock_waits",] == 0
    assert values["postgres_oldest_transaction_seconds",] > 0
    assert values["postgres_transactions_total", "commit"] > 0
    assert values["redis_memory_bytes",] > 0
    assert values["redis_commands_total",] > 0


def test_metrics_without_redis_report_all_but_the_queues(scraper, settings):
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    values = samples(scraper.get(ADDRESS))
    assert values["redis_up",] == 0
    assert ("messages", "greeter") not in values
    assert values["tasks", "errors"] == 0


def test_queries_of_the_metrics_are_independent_of_the_number_of_tasks(scraper):
    query_count(scraper, ADDRESS)  # notes that the token was used
    before = query_count(scraper, ADDRESS)
    for _ in range(5):
        in_error()
    assert query_count(scraper, ADDRESS) == before


def test_metrics_require_a_token_or_staff():
    stranger = Client().get(ADDRESS)
    assert (stranger.status_code, stranger["WWW-Authenticate"]) == (401, 'Bearer realm="metrics"')
    assert b"metrics:read" in stranger.content
    assert Client(headers={"Authorization": "Bearer sas_guess"}).get(ADDRESS).status_code == 401
    _, other = application("till", "orders:read")
    assert Client(headers={"Authorization": f"Bearer {other}"}).get(ADDRESS).status_code == 403
    assert browser(person("cleo")).get(ADDRESS).status_code == 403
    samples(browser(person("ann", "operate")).get(ADDRESS))


def test_metrics_are_read_only(scraper):
    assert scraper.post(ADDRESS).status_code == 405
    assert scraper.head(ADDRESS).status_code == 200


def test_metrics_are_open_metrics_when_requested(scraper):
    answer = scraper.get(ADDRESS, headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert answer["Content-Type"].startswith("application/openmetrics-text")
    assert answer.content.endswith(b"# EOF\n")
