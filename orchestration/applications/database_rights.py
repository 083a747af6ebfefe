"""Grant an application's database role the functions to submit by, and no table of the engine."""

from collections.abc import Sequence

from django.db import connection, transaction

from .. import registry
from ..database import sql
from ..models import ApplicationRole

FUNCTIONS = ("orchestration_submit", "orchestration_request")
RELATIONS = r"""
SELECT c.relname FROM pg_class c
WHERE c.relname LIKE 'orchestration\_%%' AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
    AND c.relnamespace = current_schema()::regnamespace
ORDER BY c.relname
"""
READABLE = r"""
SELECT c.relname FROM pg_class c
WHERE c.relname = ANY(%(names)s) AND c.relnamespace = current_schema()::regnamespace
    AND (has_any_column_privilege(%(role)s, c.oid, 'SELECT, INSERT, UPDATE, REFERENCES')
        OR has_table_privilege(%(role)s, c.oid, 'DELETE, TRUNCATE, TRIGGER'))
ORDER BY c.relname
"""


class NotGranted(Exception):
    """What was asked for would give a role too much, or nothing; the text says why."""


@transaction.atomic
def grant(role: str, application: str = "", workflows: Sequence[str] = ()) -> Sequence[str]:
    """Let a role post submissions and requests of an application; return what was done, as text.

    Its tasks are those of the workflows that it keeps, and of `workflows`, which no application keeps.
    Without a name it is the only application that keeps any; what was granted before stays. Raises
    `NotGranted` where it cannot be these, and if the role has rights on tables all the same, by another
    role's or PUBLIC's.
    """
    application = application or _only_owner()
    former = ApplicationRole.objects.filter(role=role, application=application).first()
    more = former.workflows if former else []
    names = _workflows(application, [*workflows, *(name for name in more if _is_free(name))])
    quoted = connection.ops.quote_name(role)
    schema = connection.ops.quote_name(sql.run("SELECT current_schema()", {})[0][0])
    tables = [name for (name,) in sql.run(RELATIONS, {})]
    done = [
        f"GRANT USAGE ON SCHEMA {schema} TO {quoted}",
        *(f"GRANT EXECUTE ON FUNCTION {name} TO {quoted}" for name in FUNCTIONS),
        f"REVOKE ALL ON {', '.join(tables)} FROM {quoted}",
    ]
    for statement in done:
        sql.run(statement, {})
    if readable := [name for (name,) in sql.run(READABLE, {"role": role, "names": tables})]:
        raise NotGranted(f"{role} still has rights on {', '.join(readable)}")
    values = {"application": application, "workflows": names}
    ApplicationRole.objects.update_or_create(role=role, defaults=values)
    return [*done, f"-- {role} speaks for {application}, about tasks of {', '.join(names)}"]


def _only_owner() -> str:
    owners = _owners()
    if len(owners) != 1:
        raise NotGranted(f"name the application: {', '.join(owners) or 'none keeps a workflow'}")
    return owners[0]


def _workflows(application: str, more: Sequence[str]) -> list[str]:
    """Return the workflows of an application, and those of `more` that are no other's."""
    own = posted_by(application)
    for name in more:
        if name not in registry.workflows:
            raise NotGranted(f"there is no workflow {name!r}")
        if (owner := registry.workflows[name].owner_application) not in {"", application}:
            raise NotGranted(f"{name} is kept by {owner}")
    if not own and not more:
        raise NotGranted(f"{application} keeps no workflow; {', '.join(_owners())} do")
    return sorted({*own, *more})


def posted_by(application: str) -> list[str]:
    """Return the workflows of an application that it posts itself: schedulers make the children of tasks."""
    declared = registry.workflows.values()
    children = {step.workflow for workflow in declared for step in workflow.steps}
    return [
        workflow.name
        for workflow in declared
        if workflow.owner_application == application and workflow.name not in children
    ]


def _is_free(name: str) -> bool:
    """Return whether there is such a workflow, and no application keeps it."""
    return name in registry.workflows and not registry.workflows[name].owner_application


def _owners() -> list[str]:
    return sorted({workflow.owner_application for workflow in registry.workflows.values()} - {""})
