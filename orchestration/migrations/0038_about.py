"""A task may be about another one, which it follows up. The function that posts submissions takes which.

Without these arguments, as the release before calls it, it posts tasks about none.
"""

from importlib import import_module

from django.db import migrations, models

create_in_schema = import_module("orchestration.migrations.0003_interface").create_in_schema
before = import_module("orchestration.migrations.0026_application_roles")

BEFORE = before.SUBMIT.replace("CREATE OR REPLACE", "CREATE")
SUBMIT = (
    BEFORE.replace("keys text[])\nRETURNS", "keys text[],\n    about_workflows text[] DEFAULT NULL,"
        " about_references text[] DEFAULT NULL)\nRETURNS")
    .replace("turn, reason)", "turn, reason, about_workflow, about_reference)")
    .replace("n.place, ''\n", "n.place, '',\n    coalesce(n.about_workflow, ''), coalesce(n.about_reference, '')\n")
    .replace("priorities, keys) WITH ORDINALITY", "priorities, keys,\n            about_workflows, about_references)"
        " WITH ORDINALITY")
    .replace("owner, priority, key, position)", "owner, priority, key, about_workflow, about_reference,"
        " position)")
)
# Who may call the function that it replaces may call it.
CALLERS = """
SELECT quote_ident(pg_get_userbyid(acl.grantee)) FROM pg_proc p, aclexplode(p.proacl) acl
WHERE p.proname = 'orchestration_submit' AND p.pronamespace = current_schema()::regnamespace
    AND acl.grantee NOT IN (0, p.proowner)
"""


def replace(text):
    """Return what puts this function in the place of the one that there is."""

    def run(_, schema_editor):
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(CALLERS)
            callers = [caller for (caller,) in cursor.fetchall()]
            cursor.execute("DROP FUNCTION orchestration_submit")
            create_in_schema(schema_editor.connection, {"orchestration_submit": text})
            for caller in callers:
                cursor.execute(f"GRANT EXECUTE ON FUNCTION orchestration_submit TO {caller}")

    return run


class Migration(migrations.Migration):

    dependencies = [("orchestration", "0037_children")]

    operations = [
        *(
            migrations.AddField(model_name=model, name=name, field=field)
            for model in ("task", "submission")
            for name, field in (
                ("about_workflow", models.CharField(blank=True, db_default="", default="", max_length=60)),
                ("about_reference", models.CharField(blank=True, db_default="", default="", help_text='Of the task that it is about; that need not exist.', max_length=100)),
            )
        ),
        migrations.RunPython(replace(SUBMIT), replace(BEFORE)),
    ]
