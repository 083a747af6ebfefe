"""The queues that follow from what is declared; supervisors load nothing of that, so not this either."""

from .. import registry
from . import queues


def declared() -> list[str]:
    """Return the queues of the engine: its own, each agent's, each receiver's of status messages."""
    statuses = [queues.STATUS_PREFIX + name for name in sorted(registry.receivers)]
    return [*queues.HANDLERS, *sorted(registry.agents), *statuses]
