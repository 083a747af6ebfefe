"""The admin: settings to change, with their history; all other records are read-only.

State is written by the engine's transitions only, so everything but the policies, the channels of
notifications, the applications and their tokens is read-only here.
"""

from . import applications, notifications, records, schedules, settings, statestore, step_policies

__all__ = [
    "applications",
    "notifications",
    "records",
    "schedules",
    "settings",
    "statestore",
    "step_policies",
]
