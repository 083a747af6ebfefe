"""`manage.py housekeeper`: does what goes on beside the tasks; of several, one leads."""

from orchestration import checks, leader
from orchestration.housekeeping.housekeeper import sweep
from orchestration.leading.command import Lead
from orchestration.leading.watch import Sweep


class Command(Lead):
    """Takes operations on, keeps incidents, figures and alerts up to date, ends holds."""

    name = leader.HOUSEKEEPER
    requires_system_checks = [checks.TAG]
    help = (
        "Take bulk operations on, keep incidents, figures and alerts up to date, end holds. "
        "Run one or more: one leads."
    )

    def sweep(self) -> Sweep:
        """Return what one sweep does."""
        return sweep
