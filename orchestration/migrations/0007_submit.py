"""Submissions get their turns in the statement that posts them: one round trip, where there were two.

The release before calls `orchestration_standings` and `orchestration_post`, which stay for it.
"""

from importlib import import_module

from django.db import migrations

create_in_schema = import_module("orchestration.migrations.0003_interface").create_in_schema

# A turn is given as `decisions.fairness.give_turns` gives it; a test compares them. Where a line stands is
# looked up once for each line, by its first row, with two probes of an index: the head along submission_due,
# the key's end along submission_key. The plan is kept, and may have been made when the table was empty: so
# other ways to read it are off.
SUBMIT = """
CREATE FUNCTION orchestration_submit(workflows text[], refs text[], data jsonb[], reply_to text[],
    owners text[], priorities smallint[], keys text[])
RETURNS void LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = {path}
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
INSERT INTO orchestration_submission (workflow, reference, data, reply_to, owner_application, priority,
    fairness_key, turn, reason)
SELECT n.workflow, n.reference, n.data, n.reply_to, n.owner, n.priority, n.key,
    max(n.before) OVER line + max(n.stride) OVER line * n.place, ''
FROM (
    SELECT i.*,
        CASE i.place WHEN 1 THEN greatest(
            coalesce((SELECT s.turn FROM orchestration_submission s
                WHERE s.refused_at IS NULL AND s.retry_at IS NULL AND s.priority = i.priority
                ORDER BY s.retry_at NULLS FIRST, s.turn LIMIT 1),
                (SELECT (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint)),
            (SELECT s.turn FROM orchestration_submission s
                WHERE s.refused_at IS NULL AND s.retry_at IS NULL AND s.priority = i.priority
                AND s.fairness_key = i.key ORDER BY s.turn DESC LIMIT 1)) END AS before,
        CASE i.place WHEN 1 THEN greatest(1, round(100000 / coalesce(
            (SELECT w.weight FROM orchestration_fairnessweight w WHERE w.key = i.key), 1)))
        END::bigint AS stride
    FROM (
        SELECT p.*, row_number() OVER (PARTITION BY p.priority, p.key ORDER BY p.position) AS place
        FROM unnest(workflows, refs, data, reply_to, owners, priorities, keys) WITH ORDINALITY
            AS p (workflow, reference, data, reply_to, owner, priority, key, position)
    ) i
) n
WINDOW line AS (PARTITION BY n.priority, n.key)
ORDER BY n.position
ON CONFLICT DO NOTHING
$$;
"""
# Who may call the function that it replaces may call it.
GRANT = """
DO $$
DECLARE caller text;
BEGIN
    FOR caller IN SELECT pg_get_userbyid(acl.grantee) FROM pg_proc p, aclexplode(p.proacl) acl
        WHERE p.proname = 'orchestration_post' AND p.pronamespace = current_schema()::regnamespace
            AND acl.grantee NOT IN (0, p.proowner)
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION orchestration_submit TO %I', caller);
    END LOOP;
END $$;
"""


def create_function(_, schema_editor):
    """Create the function, and let those call it that could post before."""
    create_in_schema(schema_editor.connection, {"orchestration_submit": SUBMIT})
    schema_editor.execute(GRANT, params=None)


class Migration(migrations.Migration):

    dependencies = [("orchestration", "0006_history_without_constraints")]

    operations = [
        migrations.RunPython(
            create_function,
            lambda _, editor: editor.execute("DROP FUNCTION orchestration_submit"),
        ),
    ]
