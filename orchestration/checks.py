"""System checks: find mistakes in declarations when Django starts."""

from collections.abc import Iterable
from typing import Any

import psycopg2
from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as Warn
from django.db import connection

from . import registry
from .declarations import agents, applications, children, schedules, workflows
from .declarations.problem import Problem, in_name

TAG = "orchestration"  # workers and supervisors run only these checks, and do not load the pages


@register(TAG)
def check_workflows(**_: Any) -> list[CheckMessage]:
    """Check each workflow's steps, order, agents, actions and requests."""
    known = registry.workflows
    problems = [
        (workflow, problem)
        for workflow in known.values()
        for problem in workflows.problems(workflow, registry.agents)
    ]
    if not any(workflows.is_malformed(workflow) for workflow in known.values()):
        problems += [
            (workflow, problem)
            for workflow in known.values()
            for problem in children.problems(workflow, known)
        ]
    return [_message(problem.of(f"workflow {workflow.name!r}")) for workflow, problem in problems]


@register(TAG)
def check_agents(**_: Any) -> list[CheckMessage]:
    """Check each agent's actions and the first values of its policy."""
    return [
        _message(problem.of(f"agent {agent.name!r}"))
        for agent in registry.agents.values()
        for problem in agents.problems(agent)
    ]


@register(TAG)
def check_schedules(**_: Any) -> list[CheckMessage]:
    """Check each declared schedule: when it is due, and the input of its tasks."""
    return [
        _message(problem.of(f"schedule {schedule.name!r}"))
        for schedule in registry.schedules.values()
        for problem in schedules.problems(schedule)
    ]


@register(TAG)
def check_names(**_: Any) -> list[CheckMessage]:
    """Check that names are usable, and that none is used twice."""
    kinds: list[tuple[str, Iterable[str]]] = [
        ("workflow", registry.workflows),
        ("receiver of status messages", registry.receivers),
    ]
    return [
        *(
            _message(problem)
            for kind, names in kinds
            for name in names
            for problem in in_name(kind, name)
        ),
        *(_message(Problem("E009", text, ONE_NAME)) for text in registry.registered_twice),
    ]


ONE_NAME = "The later one replaces the earlier one: rename one of them, or register it once."


@register(TAG)
def check_applications(**_: Any) -> list[CheckMessage]:
    """Check that each application of the project that declares workflows is installed."""
    return [_message(problem) for problem in applications.forgotten()]


@register(TAG)
def check_database(**_: Any) -> list[CheckMessage]:
    """Check that the database is Postgres, by the driver that the engine uses; does not connect."""
    here: Any = connection
    if here.vendor != "postgresql":
        problem = Problem("E011", f"the database is {here.vendor}", "It has to be PostgreSQL.")
    elif not issubclass(here.Database.Error, psycopg2.Error):
        problem = Problem(
            "E011",
            "Django uses psycopg 3, and the engine psycopg2",
            "Django takes psycopg 3 where it is installed: uninstall it.",
        )
    else:
        return []
    return [_message(problem)]


def _message(problem: Problem) -> CheckMessage:
    kind = Warn if problem.id.startswith("W") else Error
    return kind(problem.text, hint=problem.hint or None, id=f"orchestration.{problem.id}")
