"""The admin: thresholds to adjust, with their history; all the rest to look at.

State is written by the engine's transitions only, so everything but the policies, the channels of
notices, the applications and their tokens is read-only here.
"""

from . import applications, incidents, notices, records, rollups, settings, statestore

__all__ = ["applications", "incidents", "notices", "records", "rollups", "settings", "statestore"]
