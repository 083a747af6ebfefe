"""What an application's own database role may do: post submissions and requests, by functions only.

They run with the rights of the tables' owner, in a pinned schema. The owner's own processes call the
same ones.
"""

from django.db import migrations

STANDINGS = """
CREATE OR REPLACE FUNCTION orchestration_standings(priorities smallint[], keys text[])
RETURNS TABLE (agent text, priority smallint, key text, head bigint, last bigint,
    weight double precision, now bigint)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = {path} AS $$
-- two probes of an index for each line: the head along submission_due, the key's end along
-- submission_key
SELECT '', l.priority, l.key,
    (SELECT s.turn FROM orchestration_submission s WHERE s.refused_at IS NULL AND s.retry_at IS NULL
        AND s.priority = l.priority ORDER BY s.retry_at NULLS FIRST, s.turn LIMIT 1),
    (SELECT s.turn FROM orchestration_submission s WHERE s.refused_at IS NULL AND s.retry_at IS NULL
        AND s.priority = l.priority AND s.fairness_key = l.key ORDER BY s.turn DESC LIMIT 1),
    coalesce((SELECT w.weight FROM orchestration_fairnessweight w WHERE w.key = l.key), 1),
    (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint
FROM unnest(priorities, keys) AS l (priority, key)
$$;
"""
POST = """
CREATE OR REPLACE FUNCTION orchestration_post(workflows text[], refs text[], data jsonb[],
    reply_to text[], keepers text[], priorities smallint[], keys text[], turns bigint[])
RETURNS void LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = {path} AS $$
INSERT INTO orchestration_submission (workflow, reference, data, reply_to, keeper, priority,
    fairness_key, turn, reason)
SELECT p.*, ''
FROM unnest(workflows, refs, data, reply_to, keepers, priorities, keys, turns) AS p
ON CONFLICT DO NOTHING
$$;
"""
REQUEST = """
CREATE OR REPLACE FUNCTION orchestration_request(request uuid, workflow text, reference text,
    what text, step text, attempt integer, amendment jsonb, note jsonb, actor text, because text,
    reply_to text)
RETURNS void LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = {path} AS $$
INSERT INTO orchestration_taskrequest (request, workflow, reference, what, step, attempt, amendment,
    note, actor, because, reply_to)
VALUES (request, workflow, reference, what, step, attempt, amendment, note, actor, because, reply_to)
ON CONFLICT DO NOTHING
$$;
"""
FUNCTIONS = ("orchestration_standings", "orchestration_post", "orchestration_request")
DROP = "".join(f"DROP FUNCTION IF EXISTS {name};" for name in FUNCTIONS)


def create(_, schema_editor):
    """Create the functions, which none but the owner may call yet."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT quote_ident(current_schema())")
        path = f"pg_catalog, {cursor.fetchone()[0]}, pg_temp"
        for text in (STANDINGS, POST, REQUEST):
            cursor.execute(text.replace("{path}", path))
        for name in FUNCTIONS:
            cursor.execute(f"REVOKE ALL ON FUNCTION {name} FROM PUBLIC")


class Migration(migrations.Migration):
    dependencies = [("orchestration", "0041_the_priority_that_an_application_may_state")]

    operations = [
        migrations.RunPython(create, migrations.RunPython.noop),
        migrations.RunSQL(migrations.RunSQL.noop, DROP),
    ]
