"""Some steps of a task may be undone alone: a processed task goes on, and is processed again."""

from importlib import import_module

from django.db import migrations, models

guards = import_module("orchestration.migrations.0002_guards")
usual = import_module("orchestration.migrations.0011_usual_moves")

TASK_MOVES = {**guards.TASK_MOVES, "processed": ["processing", "undoing"]}


def only_moves(moves):
    """Return the statement for the function of the trigger, which stays as it is."""
    return f"""
        CREATE OR REPLACE FUNCTION orchestration_task_moves() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF (OLD.state, NEW.state) NOT IN ({usual.pairs(moves)}) THEN
                RAISE EXCEPTION 'illegal move of % from % to %',
                    TG_TABLE_NAME, OLD.state, NEW.state USING ERRCODE = 'check_violation';
            END IF;
            RETURN NEW;
        END $$;
        """


class Migration(migrations.Migration):

    dependencies = [
        ('orchestration', '0041_children_indexed'),
    ]

    operations = [
        migrations.AlterField(
            model_name='statusmessage',
            name='kind',
            field=models.CharField(choices=[('received', 'Request received'), ('completed', 'Completed'), ('step', 'Step changed (only for applications that ask for it)'), ('action_needed', 'Rejected: the input must be changed'), ('failed', 'Failed: an operator was alerted'), ('resumed', 'Resumed after a failure'), ('undoing', 'Being undone'), ('undone', 'Undone: no effect is left'), ('undoing_part', 'Some of its steps are being undone'), ('refused', 'A request about it was refused'), ('reminder', 'A result is awaited still'), ('amended', 'The input was changed'), ('set_aside', 'Not accepted: waiting for an operator'), ('closed', 'Not taken: an operator decided so')], max_length=20),
        ),
        migrations.AlterField(
            model_name='taskrequest',
            name='what',
            field=models.CharField(choices=[('undo', 'Undo the task'), ('undo_part', 'Undo some steps, and all that come after them'), ('resubmit', 'Retry a failed step'), ('complete', 'Report the result of a step that awaits it'), ('amend', 'Change the input for steps to come')], max_length=10),
        ),
        migrations.RunSQL(only_moves(TASK_MOVES), only_moves(guards.TASK_MOVES)),
    ]
