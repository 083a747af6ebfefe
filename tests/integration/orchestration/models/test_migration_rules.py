"""Each migration leaves the tables usable for the release before it; one that would not is refused."""

from functools import cache

import pytest
from django.contrib.postgres.operations import (
    AddConstraintNotValid,
    AddIndexConcurrently,
    ValidateConstraint,
)
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.models.functions import Random

from tests.support.migration_rules import ROWS_AT_ONCE, later, refused

pytestmark = pytest.mark.django_db
# a migration that is not atomic refuses to be in a transaction, even where its SQL is only collected
outside = pytest.mark.django_db(transaction=True)

# the sets that make an empty database; what follows is run on one that is in use
BASES = {"orchestration": "0004_fewer_indexes", "orders": "0002_storage"}
# what a migration may do all the same, and why
ALLOWED = {
    ("orchestration", "0007_submit"): {ROWS_AT_ONCE},  # it grants rights, and changes no row
    ("orchestration", "0009_in_flight_since"): {"renaming-object"},  # an index, which none names
    ("orders", "0005_visitor"): {"require-concurrent-index-creation"},  # of a table that is new
    # it replaces a function with one that the release before can call, and grants rights
    ("orchestration", "0038_about"): {ROWS_AT_ONCE},
    # it replaces functions, and writes a row for each role that may call them
    ("orchestration", "0026_application_roles"): {ROWS_AT_ONCE},
    # on new tables, which are empty, and on that of the supervisor's policy, which has one row
    ("orchestration", "0013_retention"): {
        "adding-foreign-key-constraint",
        "constraint-missing-not-valid",
    },
    # on the table of policies, which has a row for each agent
    ("orchestration", "0027_retry_after_cap"): {"constraint-missing-not-valid"},
}


@outside
@pytest.mark.parametrize("app", sorted(BASES))
def test_migrations_stop_neither_the_former_release_nor_a_table(app):
    broken = {
        migration.name: refused(migration, state) - ALLOWED.get((app, migration.name), set())
        for migration, state in later(app, BASES[app])
    }
    assert {name: rules for name, rules in broken.items() if rules} == {}


@cache
def latest():
    """Return the tables as the last migrations leave them."""
    return MigrationLoader(connection).project_state()


def of(*operations, atomic=True):
    """Return the rules that a next migration with these operations breaks."""
    migration = migrations.Migration("next", "orchestration")
    migration.operations, migration.atomic = list(operations), atomic
    return refused(migration, latest().clone())


POSITIVE = models.CheckConstraint(condition=models.Q(attempt__gte=0), name="step_attempt_positive")
BY_NAME = models.Index(fields=["name"], name="step_by_name")


@pytest.mark.parametrize(
    ("rule", "operation"),
    [
        ("require-concurrent-index-creation", migrations.AddIndex("step", BY_NAME)),
        ("require-concurrent-index-deletion", migrations.RemoveIndex("step", "step_alert")),
        ("constraint-missing-not-valid", migrations.AddConstraint("step", POSITIVE)),
        (
            "disallowed-unique-constraint",
            migrations.AddConstraint(
                "step", models.UniqueConstraint(fields=["turn"], name="turn_once")
            ),
        ),
        (
            "changing-column-type",
            migrations.AlterField("step", "attempt", models.BigIntegerField(default=0)),
        ),
        (
            "ban-drop-default",
            migrations.AddField("step", "more", models.IntegerField(default=0)),
        ),
        (
            "adding-field-with-default",
            migrations.AddField("step", "more", models.FloatField(db_default=Random())),
        ),
        (
            "adding-foreign-key-constraint",
            migrations.AddField(
                "step",
                "more",
                models.ForeignKey(
                    "orchestration.task", models.CASCADE, null=True, related_name="+"
                ),
            ),
        ),
        ("renaming-column", migrations.RenameField("step", "turn", "place")),
        ("renaming-table", migrations.RenameModel("Step", "Record")),
        ("ban-drop-column", migrations.RemoveField("step", "isolated")),
        ("ban-drop-table", migrations.DeleteModel("DeadLetter")),
        (
            "adding-not-nullable-field",
            migrations.AlterField("step", "keyed_at", models.DateTimeField()),
        ),
        (ROWS_AT_ONCE, migrations.RunSQL("UPDATE orchestration_step SET turn = 1")),
        (ROWS_AT_ONCE, migrations.RunPython(migrations.RunPython.noop)),
    ],
)
def test_rule_is_broken_by(rule, operation):
    assert rule in of(operation)


@outside
def test_rule_against_validating_with_what_adds_the_constraint():
    both = (AddConstraintNotValid("step", POSITIVE), ValidateConstraint("step", POSITIVE.name))
    assert "constraint-missing-not-valid" in of(*both)
    assert of(*both, atomic=False) == set()


@outside
def test_what_the_rules_ask_for_is_allowed():
    assert of(migrations.AddField("step", "more", models.IntegerField(db_default=0))) == set()
    assert of(AddIndexConcurrently("step", BY_NAME), atomic=False) == set()
    assert of(migrations.RunPython(migrations.RunPython.noop), atomic=False) == set()
