"""The admin: thresholds to adjust, with their history; all the rest to look at.

State is written by the engine's transitions only, so everything but the policies and the gates is
read-only here.
"""

from . import records, settings

__all__ = ["records", "settings"]
