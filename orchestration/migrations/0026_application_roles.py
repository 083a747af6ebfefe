"""The functions for applications know by the role that has logged in which application calls them.

A role that may write the tables itself is the engine's, and acts for each application. Roles that could post
before have no application yet: they go on as they did until `manage.py grant_application` names it.
"""

from importlib import import_module

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

before = import_module("orchestration.migrations.0003_interface")
submitted = import_module("orchestration.migrations.0007_submit")

# Returns how the history names the caller; null for the engine, which acts in the name of others. The
# functions that call it run with the owner's rights, so the role that has logged in is asked about.
CALLER = """
CREATE FUNCTION orchestration_caller(workflows text[], applications text[])
RETURNS text LANGUAGE plpgsql STABLE SET search_path = {path} AS $$
DECLARE own orchestration_applicationrole;
BEGIN
    IF has_table_privilege(session_user, 'orchestration_task', 'INSERT') THEN
        RETURN NULL;
    END IF;
    SELECT * INTO own FROM orchestration_applicationrole r WHERE r.role = session_user;
    IF own.role IS NULL THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('permission denied: the role %s is of no application', session_user),
            HINT = 'Run `manage.py grant_application`.';
    END IF;
    IF own.application = '' THEN
        RETURN NULL;
    END IF;
    IF NOT (workflows <@ own.workflows::text[]
            AND applications <@ ARRAY['', own.application::text]) THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('permission denied: application %s may not act on tasks of %s for %s',
                own.application, array_to_string(workflows, ', '), array_to_string(applications, ', ')),
            HINT = 'Run `manage.py grant_application` again if its workflows have changed.';
    END IF;
    RETURN 'application ' || own.application;
END $$;
"""
SUBMIT = (
    submitted.SUBMIT.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    .replace(
        "SET enable_sort = off AS",
        "SET enable_sort = off\nSET plan_cache_mode = force_generic_plan AS",
    )
    .replace(
        "\nINSERT INTO",
        "\nSELECT orchestration_caller(workflows, reply_to || owners);\nINSERT INTO",
    )
)
REQUEST = before.REQUEST.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION").replace(
    "note, actor, because, reply_to)\nON",
    "note,\n    coalesce(orchestration_caller(ARRAY[workflow], ARRAY[reply_to]), actor), because, reply_to)\nON",
)
FUNCTIONS = {
    "orchestration_caller": CALLER,
    "orchestration_submit": SUBMIT,
    "orchestration_request": REQUEST,
}
# those of a release that is long gone; they would let a role act for any application
FORMER = {
    name: before.FUNCTIONS[name] for name in ("orchestration_post", "orchestration_standings")
}
KEEP = """
INSERT INTO orchestration_applicationrole (role, application, workflows)
SELECT DISTINCT pg_get_userbyid(acl.grantee), '', ARRAY[]::text[]
FROM pg_proc p, aclexplode(p.proacl) acl
WHERE p.proname = 'orchestration_submit' AND p.pronamespace = current_schema()::regnamespace
    AND acl.grantee NOT IN (0, p.proowner)
ON CONFLICT DO NOTHING
"""


def replace_functions(_, schema_editor):
    """Have the functions ask who calls them, and keep those roles that may call them."""
    before.create_in_schema(schema_editor.connection, FUNCTIONS)
    schema_editor.execute(KEEP, params=None)
    for name in FORMER:
        schema_editor.execute(f"DROP FUNCTION {name}")


def restore_functions(_, schema_editor):
    """Have the functions believe their callers again."""
    former = {
        "orchestration_submit": SUBMIT.replace(
            "SELECT orchestration_caller(workflows, reply_to || owners);", ""
        ),
        "orchestration_request": before.REQUEST.replace("CREATE", "CREATE OR REPLACE"),
    }
    before.create_in_schema(schema_editor.connection, {**FORMER, **former})
    schema_editor.execute("DROP FUNCTION orchestration_caller")


class Migration(migrations.Migration):
    dependencies = [("orchestration", "0025_shallow_messages")]

    operations = [
        migrations.CreateModel(
            name="ApplicationRole",
            fields=[
                (
                    "role",
                    models.CharField(
                        help_text="As it logs in.", max_length=63, primary_key=True, serialize=False
                    ),
                ),
                ("application", models.CharField(blank=True, max_length=60)),
                (
                    "workflows",
                    ArrayField(
                        base_field=models.CharField(max_length=60),
                        help_text="Of whose tasks it may submit and ask for changes.",
                        size=None,
                    ),
                ),
            ],
            options={"ordering": ["role"]},
        ),
        migrations.RunPython(replace_functions, restore_functions),
    ]
