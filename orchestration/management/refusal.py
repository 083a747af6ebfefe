"""RQ's own commands, which cannot serve the queues of the engine: there they are refused."""

from typing import Any

from django.core.management import load_command_class
from django.core.management.base import BaseCommand, CommandError

from ..messaging import queue_names


def guarded(command: str) -> type[BaseCommand]:
    """Return django-rq's command of this name, for the queues of others alone.

    RQ's worker would unpickle and run what any job names, in a fork for each, and would report itself
    to no supervisor.
    """
    theirs: Any = type(load_command_class("django_rq", command))

    class Guarded(theirs):  # type: ignore[misc]
        """Refuses the engine's queues."""

        def handle(self, *arguments: str, **options: Any) -> None:
            """Run RQ's command, unless a queue is the engine's."""
            known = queue_names.declared()
            if reserved := [name for name in known if name in {*arguments, options.get("queue")}]:
                raise CommandError(
                    f"{command} cannot serve {', '.join(reserved)}, the engine's own: "
                    f"manage.py work {' '.join(reserved)}"
                )
            super().handle(*arguments, **options)

    return Guarded
