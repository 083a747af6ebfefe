"""What the database refuses by itself: illegal moves of state, and changes of history.

Also the storage of the tables whose rows change in place: room on each page, so that an update
stays on it, and an early vacuum.
"""

from django.db import migrations

# The legal moves as of this migration; a test compares them with `states.py`.
TASK_MOVES = {
    "pending": ["processing", "error", "undoing"],
    "processing": ["processed", "error", "undoing"],
    "processed": ["undoing"],
    "error": ["processing", "undoing"],
    "undoing": ["undone", "error"],
    "undone": [],
}
STEP_MOVES = {
    "waiting": ["pending", "error", "cancelled"],
    "pending": ["processing", "cancelled"],
    "processing": ["processed", "pending", "error"],
    "processed": [],
    "error": ["pending", "skipped", "cancelled"],
    "skipped": [],
    "cancelled": [],
}


def trigger(table: str, column: str, moves: dict[str, list[str]]) -> migrations.RunSQL:
    """Return the operation that makes `table` refuse every move that is not in `moves`."""
    name = f"{table}_moves"
    allowed = ", ".join(f"('{a}', '{b}')" for a, after in moves.items() for b in after)
    return migrations.RunSQL(
        f"""
        CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF (OLD.{column}, NEW.{column}) NOT IN ({allowed}) THEN
                RAISE EXCEPTION 'illegal move of % from % to %',
                    TG_TABLE_NAME, OLD.{column}, NEW.{column} USING ERRCODE = 'check_violation';
            END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER {name} BEFORE UPDATE OF {column} ON {table} FOR EACH ROW
        WHEN (OLD.{column} IS DISTINCT FROM NEW.{column}) EXECUTE FUNCTION {name}();
        """,
        f"DROP TRIGGER {name} ON {table}; DROP FUNCTION {name}();",
    )


def append_only(table: str) -> migrations.RunSQL:
    """Return the operation that makes `table` refuse updates."""
    name = f"{table}_append_only"
    return migrations.RunSQL(
        f"""
        CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION '% is history: rows are only added', TG_TABLE_NAME
                USING ERRCODE = 'check_violation';
        END $$;
        CREATE TRIGGER {name} BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION {name}();
        """,
        f"DROP TRIGGER {name} ON {table}; DROP FUNCTION {name}();",
    )


def hot(table: str) -> migrations.RunSQL:
    """Return the operation that suits the storage of `table` to rows that change in place."""
    return migrations.RunSQL(
        f"ALTER TABLE {table} SET (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.01)",
        f"ALTER TABLE {table} RESET (fillfactor, autovacuum_vacuum_scale_factor)",
    )


class Migration(migrations.Migration):

    dependencies = [("orchestration", "0001_initial")]

    operations = [
        trigger("orchestration_task", "state", TASK_MOVES),
        trigger("orchestration_step", "process_state", STEP_MOVES),
        append_only("orchestration_attempt"),
        append_only("orchestration_event"),
        hot("orchestration_task"),
        hot("orchestration_step"),
        hot("orchestration_submission"),
        hot("orchestration_statusmessage"),
        hot("orchestration_worker"),
    ]
