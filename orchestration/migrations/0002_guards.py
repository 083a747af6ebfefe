"""What the database enforces by itself, and how it stores the tables that change often.

- Triggers refuse every move of state that is not legal, and every change of history. They also stop what does
  not go through `orchestration/transitions`: a shell, a report, a mistake.
- Storage parameters of the tables whose rows are updated in place.
"""

from django.db import migrations

# The legal moves at the time of this migration. Tests compare them with `orchestration/states.py` and
# `orchestration/models/operation.py`: who changes the moves there has to write a migration.
TASK_MOVES = {
    "pending": ["processing", "error", "undoing"],
    "processing": ["processed", "error", "undoing"],
    "processed": ["undoing"],
    "error": ["processing", "processed", "undoing", "undone"],
    "undoing": ["undone", "error"],
    "undone": ["undoing"],
}
STEP_MOVES = {
    "waiting": ["pending", "error", "cancelled"],
    "pending": ["processing", "error", "cancelled"],
    "processing": ["processed", "pending", "error", "cancelled"],
    "processed": [],
    "error": ["pending", "skipped", "cancelled"],
    "skipped": [],
    "cancelled": ["pending"],
}
OPERATION_MOVES = {
    "draft": ["waiting", "approval"],
    "approval": ["waiting", "aborted"],
    "waiting": ["running", "aborted"],
    "running": ["paused", "aborted", "ended"],
    "paused": ["running", "aborted", "ended"],
    "aborted": [],
    "ended": [],
}
ITEM_MOVES = {
    "waiting": ["sent", "skipped"],
    "sent": ["fixed", "again", "other", "skipped"],
    "fixed": [],
    "again": [],
    "other": [],
    "skipped": [],
}


def only_moves(table: str, column: str, moves: dict[str, list[str]]) -> migrations.RunSQL:
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
        f"DROP FUNCTION {name}() CASCADE",
    )


def append_only(table: str) -> migrations.RunSQL:
    """Return the operation that makes `table` refuse updates; rows may go with their task."""
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
        f"DROP FUNCTION {name}() CASCADE",
    )


def stored(table: str, **parameters: float) -> migrations.RunSQL:
    """Return the operation that sets storage parameters of `table`."""
    values = ", ".join(f"{name} = {value}" for name, value in parameters.items())
    return migrations.RunSQL(
        f"ALTER TABLE {table} SET ({values})", f"ALTER TABLE {table} RESET ({', '.join(parameters)})"
    )


def updated_in_place(table: str) -> migrations.RunSQL:
    """Return the operation for large tables whose rows change a few times each.

    With room on each page, an update stays on its page and touches no index. An early vacuum keeps
    the indexes of what waits small.
    """
    return stored(table, fillfactor=75, autovacuum_vacuum_scale_factor=0.01)


class Migration(migrations.Migration):

    dependencies = [("orchestration", "0001_initial")]

    operations = [
        only_moves("orchestration_task", "state", TASK_MOVES),
        only_moves("orchestration_step", "process_state", STEP_MOVES),
        only_moves("orchestration_operation", "state", OPERATION_MOVES),
        only_moves("orchestration_operationitem", "state", ITEM_MOVES),
        append_only("orchestration_attempt"),
        append_only("orchestration_event"),
        updated_in_place("orchestration_task"),
        updated_in_place("orchestration_step"),
        updated_in_place("orchestration_submission"),
        updated_in_place("orchestration_statusmessage"),
        updated_in_place("orchestration_worker"),
        updated_in_place("orchestration_operationitem"),
        # A few rows, each updated many times a second or with every item
        stored("orchestration_gate", fillfactor=50),
        stored("orchestration_operation", fillfactor=50),
    ]
