"""The state store: what the engine must never lose (P1, P5, P6)."""

from .alert import Alert
from .history import Attempt, Event
from .inbox import StatusMessage, Submission
from .policy import Gate, Policy, SupervisorPolicy
from .process import Lease, Worker
from .task import Step, Task

__all__ = [
    "Alert",
    "Attempt",
    "Event",
    "Gate",
    "Lease",
    "Policy",
    "StatusMessage",
    "Step",
    "Submission",
    "SupervisorPolicy",
    "Task",
    "Worker",
]
