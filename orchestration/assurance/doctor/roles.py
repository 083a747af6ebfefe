"""The database roles of applications: whether each speaks for one application, as it is now."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from django.core.checks import CheckMessage, Info
from django.core.checks import Warning as Warn
from django.db import Error as DatabaseError

from ... import registry
from ...applications import database_rights
from ...database import sql
from .subjects import Moot, Subject

# Roles with a row, and those that may call one of the functions; the engine's own, which may write the
# tables, need neither.
ROLES = """
SELECT coalesce(r.role, c.role), coalesce(r.application, ''), coalesce(r.workflows, '{}')::text[],
    r.role IS NOT NULL, p.rolname IS NOT NULL, coalesce(c.functions, 0)
FROM orchestration_applicationrole r
FULL JOIN (
    SELECT pg_get_userbyid(acl.grantee)::text AS role, count(*) AS functions
    FROM pg_proc f, aclexplode(f.proacl) acl
    WHERE f.proname = ANY(%(functions)s) AND f.pronamespace = current_schema()::regnamespace
        AND acl.grantee NOT IN (0, f.proowner)
        AND NOT has_table_privilege(acl.grantee, 'orchestration_task', 'INSERT')
    GROUP BY 1
) c ON c.role = r.role
LEFT JOIN pg_roles p ON p.rolname = coalesce(r.role, c.role)
ORDER BY 1
"""
AGAIN = "Run `manage.py grant_application {role} {application}` again"


@dataclass(frozen=True, kw_only=True)
class Role:
    """One role: its application ("": any), whether it is named, there, and may call all functions."""

    name: str
    application: str
    workflows: Collection[str]
    named: bool
    there: bool
    functions: int


@dataclass(frozen=True, kw_only=True)
class Roles:
    """The facts: the roles, and the workflows that each application keeps; "" for those that none keeps."""

    roles: Sequence[Role]
    owned: dict[str, set[str]]


def gather() -> Roles:
    """Read the roles; whether the database is unavailable, or empty, is another subject."""
    try:
        rows = sql.run(ROLES, {"functions": list(database_rights.FUNCTIONS)})
    except DatabaseError as error:
        raise Moot from error
    owners = {workflow.owner_application for workflow in registry.workflows.values()}
    owned = {owner: set(database_rights.posted_by(owner)) for owner in owners}
    return Roles(roles=[sql.record(Role, row) for row in rows], owned=owned)


subject = Subject("roles", gather, remedy="Run `manage.py migrate`.")


def _of_applications(facts: Roles) -> Iterator[Role]:
    return (role for role in facts.roles if role.there and role.application)


@subject.check
def any_application(facts: Roles) -> Iterator[CheckMessage]:
    """Check that each role speaks for one application: before roles had one, they spoke for any."""
    for role in facts.roles:
        if role.there and role.named and not role.application:
            yield Warn(
                f"The database role {role.name} may act for any application, on tasks of every workflow.",
                hint=f"Run `manage.py grant_application {role.name} APPLICATION` "
                "(`manage.py grant_shop` for the shop's).",
            )


@subject.check
def unnamed(facts: Roles) -> Iterator[CheckMessage]:
    """Check that a role which may call the functions is not refused by them."""
    for role in facts.roles:
        if not role.named:
            yield Warn(
                f"The database role {role.name} may call the functions for applications, and is of none: "
                "each call is refused.",
                hint=f"Run `manage.py grant_application {role.name} APPLICATION`, or revoke its rights on "
                f"{' and '.join(database_rights.FUNCTIONS)}.",
            )


@subject.check
def rights(facts: Roles) -> Iterator[CheckMessage]:
    """Check that a role of an application may call the functions that it is named for."""
    for role in _of_applications(facts):
        if role.functions < len(database_rights.FUNCTIONS):
            yield Warn(
                f"The database role {role.name} of {role.application} may not call all functions for "
                "applications.",
                hint=f"{AGAIN.format(role=role.name, application=role.application)}.",
            )


@subject.check
def applications(facts: Roles) -> Iterator[CheckMessage]:
    """Check that the application of a role keeps workflows, or has any that none keeps."""
    for role in _of_applications(facts):
        if role.application not in facts.owned and not set(role.workflows) & facts.owned.get(
            "", set()
        ):
            yield Warn(
                f"The database role {role.name} is of {role.application}, which keeps no workflow.",
                hint="Name another by `manage.py grant_application`, or drop the role.",
            )


@subject.check
def workflows(facts: Roles) -> Iterator[CheckMessage]:
    """Check that a role may act on the workflows that its application keeps now, and on no former one."""
    for role in _of_applications(facts):
        own = facts.owned.get(role.application, set())
        missing = own - set(role.workflows)
        former = set(role.workflows) - own - facts.owned.get("", set())
        if own and (missing or former):
            changed = [
                *(f"lacks {name}" for name in sorted(missing)),
                *(f"has {name}, which is another's or gone" for name in sorted(former)),
            ]
            yield Warn(
                f"The database role {role.name} of {role.application} {', '.join(changed)}.",
                hint=f"{AGAIN.format(role=role.name, application=role.application)}.",
            )


@subject.check
def gone(facts: Roles) -> Iterator[CheckMessage]:
    """Note an application's role that the server does not have: a new one of that name would speak for it."""
    for role in facts.roles:
        if not role.there:
            yield Info(
                f"There is a row for the database role {role.name}, and no such role.",
                hint=f"Remove it from orchestration_applicationrole (role = '{role.name}').",
            )
