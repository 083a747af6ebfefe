"""`manage.py rqscheduler`: django-rq's, which refuses the engine's queues."""

from orchestration.management.refusal import guarded

Command = guarded("rqscheduler")
