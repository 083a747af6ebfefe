"""`manage.py rqworker-pool`: django-rq's, which refuses the engine's queues."""  # noqa: N999 - a command is named by its module

from orchestration.management.refusal import guarded

Command = guarded("rqworker-pool")
