"""Says what in a migration would stop the release before it, or hold a table that is in use.

squawk reads the SQL that Postgres would get. Of its rules, those on taste are left out, and those on
time-outs, which `manage.py migrate` sets. What it cannot see, as it is in Python, is a rule of this module.
"""

import json
import subprocess
import sys
from pathlib import Path

from django.db import connection
from django.db.migrations import Migration, RunPython
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState

OLDEST = "14"  # Postgres that is supported
LEFT_OUT = (
    "prefer-bigint-over-int",
    "prefer-bigint-over-smallint",
    "prefer-identity",
    "prefer-robust-stmts",
    "prefer-text-field",
    "prefer-timestamptz",
    "require-lock-timeout",
    "require-statement-timeout",
    "require-timeout-settings",
    "ban-char-field",
    "ban-drop-constraint",  # takes a moment, and lets the former release do what it did
    "transaction-nesting",
)
ROWS_AT_ONCE = "rows-in-one-transaction"


def statements(migration: Migration, state: ProjectState) -> list[str]:
    """Return the SQL of a migration that is applied to `state`, which it changes."""
    with connection.schema_editor(collect_sql=True, atomic=migration.atomic) as editor:
        migration.apply(state, editor, collect_sql=True)
    return list(editor.collected_sql)


def refused(migration: Migration, state: ProjectState) -> set[str]:
    """Return the names of the rules that a migration breaks."""
    squawk = [
        str(Path(sys.executable).with_name("squawk")),
        "--reporter=json",
        f"--pg-version={OLDEST}",
    ]
    squawk += [f"--exclude={rule}" for rule in LEFT_OUT]
    squawk += ["--assume-in-transaction"] if migration.atomic else []
    sql = "\n".join(statements(migration, state))
    done = subprocess.run(squawk, input=sql, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    broken = {breach["rule_name"] for breach in json.loads(done.stdout or "[]")}
    if migration.atomic and (
        any(isinstance(operation, RunPython) for operation in migration.operations)
        or _writes_rows(sql)
    ):
        broken.add(ROWS_AT_ONCE)
    return broken


def _writes_rows(sql: str) -> bool:
    """Return whether a statement changes rows by itself, and not in the text of a function."""
    return any(line.startswith(("UPDATE ", "DELETE ")) for line in sql.splitlines())


def later(app: str, base: str) -> list[tuple[Migration, ProjectState]]:
    """Return an application's migrations after `base`, each with the state that it is applied to."""
    loader = MigrationLoader(connection)
    plan = loader.graph.forwards_plan(loader.graph.leaf_nodes(app)[0])
    names = [name for label, name in plan if label == app]
    return [
        (loader.graph.nodes[app, name], loader.project_state((app, name), at_end=False))
        for name in names[names.index(base) + 1 :]
    ]
