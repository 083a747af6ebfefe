"""The operators' dashboard: pages that show the state store, and what operators do about it."""

from .agents import agents, probe
from .alerts import acknowledge, settle
from .dead_letters import close_letters, letters, retry_letters
from .holds import hold, release
from .incidents import (
    acknowledge_incident,
    assign_incident,
    incident,
    incident_list,
    mute_incident,
    note_incident,
    resolve_incident,
    unmute_incident,
)
from .listing import task_list
from .metrics import metrics
from .operating import (
    operation_abort,
    operation_approve,
    operation_confirm,
    operation_likewise,
    operation_look,
    operation_new,
    operation_pause,
    operation_resume,
)
from .operations import operation, operation_list
from .overview import overview
from .priority import priority
from .resubmission import by_hand, change, resubmit
from .rows import row
from .saved import forget_view, save_view
from .system import system
from .task import task
from .trail import audit
from .undo import undo
from .workflows import workflows

__all__ = [
    "acknowledge",
    "acknowledge_incident",
    "agents",
    "assign_incident",
    "audit",
    "by_hand",
    "change",
    "close_letters",
    "forget_view",
    "hold",
    "incident",
    "incident_list",
    "letters",
    "metrics",
    "mute_incident",
    "note_incident",
    "operation",
    "operation_abort",
    "operation_approve",
    "operation_confirm",
    "operation_likewise",
    "operation_list",
    "operation_look",
    "operation_new",
    "operation_pause",
    "operation_resume",
    "overview",
    "priority",
    "probe",
    "release",
    "resolve_incident",
    "resubmit",
    "retry_letters",
    "row",
    "save_view",
    "settle",
    "system",
    "task",
    "task_list",
    "undo",
    "unmute_incident",
    "workflows",
]
