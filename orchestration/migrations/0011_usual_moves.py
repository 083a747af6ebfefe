"""The conditions of the triggers that watch moves name only the moves of every task; their functions know the rest.

Postgres reads a trigger's condition anew, from a text, for each statement that might fire it: with all
legal moves that took a tenth of the time of an update of one step.

Each table in a transaction of its own: one that locked both could deadlock with a worker. It can be run again if it
was interrupted.
"""

from importlib import import_module

from django.db import migrations

guards = import_module("orchestration.migrations.0002_guards")
before = import_module("orchestration.migrations.0005_claimed_at_once")

USUAL = {
    "orchestration_task": {"pending": ["processing"], "processing": ["processed"]},
    "orchestration_step": {
        "waiting": ["pending", "processing"],
        "pending": ["processing"],
        "processing": ["processed"],
    },
}


def pairs(moves: dict[str, list[str]]) -> str:
    """Return moves as a list of rows in SQL."""
    return ", ".join(f"('{a}', '{b}')" for a, after in moves.items() for b in after)


def only_moves(table: str, column: str, moves: dict[str, list[str]]) -> str:
    """Return the statements that make `table` refuse every move that is not in `moves`."""
    name = f"{table}_moves"
    return f"""
        CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF (OLD.{column}, NEW.{column}) NOT IN ({pairs(moves)}) THEN
                RAISE EXCEPTION 'illegal move of % from % to %',
                    TG_TABLE_NAME, OLD.{column}, NEW.{column} USING ERRCODE = 'check_violation';
            END IF;
            RETURN NEW;
        END $$;
        CREATE OR REPLACE TRIGGER {name} BEFORE UPDATE OF {column} ON {table} FOR EACH ROW
        WHEN (OLD.{column} IS DISTINCT FROM NEW.{column}
            AND (OLD.{column}, NEW.{column}) NOT IN ({pairs(USUAL[table])}))
        EXECUTE FUNCTION {name}();
        """


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("orchestration", "0010_pending_since")]

    operations = [
        migrations.RunSQL(
            only_moves(table, column, moves), before.only_moves(table, column, moves)
        )
        for table, column, moves in (
            ("orchestration_task", "state", guards.TASK_MOVES),
            ("orchestration_step", "process_state", before.STEP_MOVES),
        )
    ]
