"""`manage.py supervisor`: finds failed and expired steps; of several, one leads."""

from orchestration.cluster import leader_election
from orchestration.supervision.command import Lead
from orchestration.supervision.watch import Sweeping
from orchestration.supervisor import sweep


class Command(Lead):
    """Runs the supervisor. It loads no workflow, so there is nothing for system checks to check."""

    name = leader_election.SUPERVISOR
    requires_system_checks = []
    help = "Find failed and expired steps and have them tried again. Run two or more: one leads."

    def sweep(self) -> Sweeping:
        """Return the function that does one sweep."""
        return sweep
