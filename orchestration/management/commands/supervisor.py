"""`manage.py supervisor`: finds failed and expired steps; of several, one leads."""

from orchestration import leader
from orchestration.leading.command import Lead
from orchestration.leading.watch import Sweep
from orchestration.supervisor import sweep


class Command(Lead):
    """Watches the state store, and loads no workflow: so what its checks are about is not there."""

    name = leader.SUPERVISOR
    requires_system_checks = []
    help = "Find failed and expired steps and have them tried again. Run two or more: one leads."

    def sweep(self) -> Sweep:
        """Return what one sweep does."""
        return sweep
