"""The admin: thresholds to adjust, with their history; all the rest to look at.

State is written by the engine's transitions only, so everything but the policies, the gates and the
channels of notices is read-only here.
"""

from . import incidents, notices, records, settings

__all__ = ["incidents", "notices", "records", "settings"]
