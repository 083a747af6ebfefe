"""What others see of the engine's tables: a view with the pattern's names, functions for applications.

The functions are all that an application's own database role may call: they post submissions and
requests. They run with the rights of the tables' owner, in a pinned schema. The owner's processes
call the same functions.
"""

from django.db import migrations

# A reader who looks for OrderID, LockedBy or FailureCount finds them here. A cancelled or skipped step
# is Processed: nothing is left to be done for it. `state` distinguishes them.
STATE_STORE = """
CREATE VIEW orchestration_statestore AS
SELECT s.id, t.reference AS order_id, t.workflow, s.name AS step, s.direction, s.agent,
    s.locked_by, s.complete_by,
    CASE s.process_state
        WHEN 'waiting' THEN 'Pending'
        WHEN 'pending' THEN 'Pending'
        WHEN 'processing' THEN 'Processing'
        WHEN 'error' THEN 'Error'
        ELSE 'Processed'
    END AS process_state,
    s.failure_count, s.attempt, s.process_state AS state, t.state AS task_state, s.task_id
FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
"""

# Where lines stand in the inbox: an application takes its turns by it without a right on the table.
STANDINGS = """
CREATE FUNCTION orchestration_standings(priorities smallint[], keys text[])
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
CREATE FUNCTION orchestration_post(workflows text[], refs text[], data jsonb[],
    reply_to text[], keepers text[], priorities smallint[], keys text[], turns bigint[])
RETURNS void LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = {path} AS $$
INSERT INTO orchestration_submission (workflow, reference, data, reply_to, owner_application, priority,
    fairness_key, turn, reason)
SELECT p.*, ''
FROM unnest(workflows, refs, data, reply_to, keepers, priorities, keys, turns) AS p
ON CONFLICT DO NOTHING
$$;
"""
REQUEST = """
CREATE FUNCTION orchestration_request(request uuid, workflow text, reference text,
    what text, step text, attempt integer, amendment jsonb, note jsonb, actor text, because text,
    reply_to text)
RETURNS void LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = {path} AS $$
INSERT INTO orchestration_taskrequest (request, workflow, reference, what, step, attempt, amendment,
    note, actor, because, reply_to)
VALUES (request, workflow, reference, what, step, attempt, amendment, note, actor, because, reply_to)
ON CONFLICT DO NOTHING
$$;
"""
FUNCTIONS = {
    "orchestration_standings": STANDINGS,
    "orchestration_post": POST,
    "orchestration_request": REQUEST,
}


def create_functions(_, schema_editor):
    """Create the functions in the schema of the tables; only the owner may call them yet."""
    create_in_schema(schema_editor.connection, FUNCTIONS)


def create_in_schema(connection, functions):
    """Create functions that run with the rights of the owner, who alone may call them yet.

    Without a pinned path, a caller could put a table of its own before the engine's.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT quote_ident(current_schema())")
        path = f"pg_catalog, {cursor.fetchone()[0]}, pg_temp"
        for name, text in functions.items():
            cursor.execute(text.replace("{path}", path))
            cursor.execute(f"REVOKE ALL ON FUNCTION {name} FROM PUBLIC")


def drop_functions(_, schema_editor):
    """Drop the functions."""
    for name in FUNCTIONS:
        schema_editor.execute(f"DROP FUNCTION {name}")


class Migration(migrations.Migration):

    dependencies = [("orchestration", "0002_guards")]

    operations = [
        migrations.RunSQL(STATE_STORE, "DROP VIEW orchestration_statestore"),
        migrations.RunPython(create_functions, drop_functions),
    ]
