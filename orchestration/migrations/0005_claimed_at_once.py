"""A step that is ready may be claimed at once, and legal moves of tasks and steps call no function.

The triggers compare the states in their conditions, which costs a tenth of a function's call.
"""

from importlib import import_module

from django.db import migrations

guards = import_module("orchestration.migrations.0002_guards")

# The legal moves of steps at the time of this migration; those of tasks are as they were.
STEP_MOVES = {**guards.STEP_MOVES, "waiting": ["pending", "processing", "error", "cancelled"]}


def only_moves(table: str, column: str, moves: dict[str, list[str]]) -> str:
    """Return the statements that make `table` refuse every move that is not in `moves`."""
    name = f"{table}_moves"
    allowed = ", ".join(f"('{a}', '{b}')" for a, after in moves.items() for b in after)
    return f"""
        CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'illegal move of % from % to %',
                TG_TABLE_NAME, OLD.{column}, NEW.{column} USING ERRCODE = 'check_violation';
        END $$;
        DROP TRIGGER {name} ON {table};
        CREATE TRIGGER {name} BEFORE UPDATE OF {column} ON {table} FOR EACH ROW
        WHEN (OLD.{column} IS DISTINCT FROM NEW.{column}
            AND (OLD.{column}, NEW.{column}) NOT IN ({allowed})) EXECUTE FUNCTION {name}();
        """


class Migration(migrations.Migration):

    dependencies = [("orchestration", "0004_fewer_indexes")]

    operations = [
        migrations.RunSQL(
            only_moves(table, column, moves), only_moves(table, column, before)
        )
        for table, column, moves, before in (
            ("orchestration_task", "state", guards.TASK_MOVES, guards.TASK_MOVES),
            ("orchestration_step", "process_state", STEP_MOVES, guards.STEP_MOVES),
        )
    ]
