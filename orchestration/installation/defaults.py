"""Settings of the engine, with the values of those that a project leaves out."""

from copy import copy
from typing import Any

from django.conf import settings

DEFAULTS: dict[str, Any] = {
    "REDIS_URL": "redis://127.0.0.1:6379/0",
    "RQ_QUEUES": {},  # of other code; the engine adds its own when it uses them
    "MESSAGE_KEYS": [],  # the first one signs what goes through Redis; without any, nothing is signed
    "UNSIGNED_MESSAGES": False,  # accept those without a signature all the same, while keys are brought in
    "AGENT_SLOTS": {},  # requests that one worker has at once, by agent
    "ARCHIVE_DIR": "",
    "REMOVE_AFTER_DAYS": {},
    "SITE_URL": "http://localhost:8000",  # where links in notices lead
    "RUNBOOK_URL": "",
    "TRACE_URL": "",
    "WEBHOOK_HOSTS": [],
    "WEBHOOKS_ALLOW_PRIVATE": False,
}


def fill_in() -> None:
    """Give the project's settings what they leave out."""
    for name, value in DEFAULTS.items():
        if not hasattr(settings, name):
            setattr(settings, name, copy(value))
