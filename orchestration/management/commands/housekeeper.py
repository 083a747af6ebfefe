"""`manage.py housekeeper`: does what goes on beside the tasks; of several, one leads."""

from orchestration import checks
from orchestration.cluster import leader_election
from orchestration.housekeeping.housekeeper import sweep
from orchestration.supervision.command import Lead
from orchestration.supervision.watch import Sweeping


class Command(Lead):
    """Takes operations on, keeps incidents, figures and alerts up to date, ends holds."""

    name = leader_election.HOUSEKEEPER
    requires_system_checks = [checks.TAG]
    help = (
        "Take bulk operations on, keep incidents, figures and alerts up to date, end holds. "
        "Run one or more: one leads."
    )

    def sweep(self) -> Sweeping:
        """Return what one sweep does."""
        return sweep
