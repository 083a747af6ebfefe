"""The rules of a policy, as the system checks hold them, are those of the database."""

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from orchestration import registry
from orchestration.agents.policy_values import PolicyValues
from orchestration.api import Agent
from orchestration.declarations import agents, first_values
from orchestration.models import Policy

pytestmark = pytest.mark.django_db

VALUES = [
    {},
    {"call_timeout": 0.0},
    {"call_timeout": 600.0, "time_allowed": 600.0},
    {"call_timeout": 600.1, "time_allowed": 700.0},
    {"time_allowed": 2.9},
    {"time_allowed": 86_401.0, "key_memory": None},
    {"tries": 10},
    {"tries": 11},
    {"failure_threshold": 20},
    {"failure_threshold": 21},
    {"failure_threshold": 1001, "undo_threshold": 1001},
    {"backoff": 61.0},
    {"backoff": 61.0, "backoff_cap": 61.0},
    {"window": 10_000},
    {"window": 10_001},
    {"past_threshold": "undo", "on_rejection": "wait"},
    {"resolve_within": 0.0},
    {"extended_wait": 604_801.0},
    {"max_extended_waits": 1001},
    {"key_memory": 9.9},
    {"key_memory": None},
    {"rate": 0.0},
    {"rate": 0.1},
    {"rate": None},
    {"aged_after": -1.0},
    {"breaker_calls": 4},
    {"breaker_share": 1.1},
    {"breaker_pause": 16.0},
    {"breaker_pause": 15.0},
    {"retry_after_cap": 0.0},
    {"retry_after_cap": 86_400.0},
    {"retry_after_cap": 86_401.0},
]


def refused(values):
    """Return what the database says against a policy."""
    try:
        Policy(agent="dns", **values).validate_constraints()
    except ValidationError as error:
        return sorted(error.messages)
    return []


@pytest.mark.parametrize("values", VALUES, ids=str)
def test_checks_refuse_what_the_database_refuses(values):
    agent = type("Dns", (Agent,), {"name": "dns", "policy": values})
    sentences = [problem.text.partition(": ")[2] for problem in agents.problems(agent)]
    assert sorted(sentences) == refused(values)


def test_values_are_of_both_kinds():
    assert 10 < sum(bool(refused(values)) for values in VALUES) < len(VALUES) - 10


def test_types_have_every_threshold():
    assert PolicyValues.__annotations__.keys() == first_values.thresholds().keys()


def test_migrate_refuses_a_misspelt_threshold_with_a_sentence(monkeypatch):
    agent = type("Dns", (Agent,), {"name": "dns", "policy": {"failure_treshold": 3}})
    monkeypatch.setitem(registry.agents, "dns", agent)
    with pytest.raises(SystemCheckError, match="did you mean 'failure_threshold'"):
        call_command("migrate", skip_checks=False, verbosity=0)
    assert not Policy.objects.filter(agent="dns").exists()
