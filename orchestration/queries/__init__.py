"""What the operators' dashboard reads. Nothing here writes, and every count is capped.

Each page costs a constant number of queries over indexes, however many rows there are.
"""

from .acts import (
    Act,
    alert_by_id,
    who_acknowledged,
    who_closed,
    who_decided,
    who_held,
    who_prioritized,
    who_probed,
    who_released,
    who_undid,
)
from .agents import CAP, agents, database_now
from .attention import counts, open_alerts
from .dead_letters import Letter, LettersPage, letters, who_requeued
from .detail import Again, StepDetail, TaskDetail, again, step_by_id, task_by_id, task_detail
from .gates import AgentRow, AgentsPage, agent_row, agents_page
from .health import Shell, shell
from .holds import hold_by_id, hold_in_force
from .incidents import (
    IncidentDetail,
    IncidentFilters,
    IncidentPage,
    IncidentRow,
    assignable,
    hit_of,
    incident_by_id,
    incident_detail,
    incidents,
    top,
    who_was_first,
)
from .listing import Place, TaskPage, task_row, tasks
from .narrowing import count, left_out, matching, standing
from .operations import (
    OperationDetail,
    OperationFilters,
    OperationPage,
    ever_tried,
    operation_by_id,
    operation_detail,
    operations,
    who_operated,
)
from .outlook import AgentView, Outlook
from .overview import Overview, overview
from .preview import undo_preview
from .reasons import waiting_because, why_each
from .saved import saved_views
from .search import BACKGROUND, TROUBLE, Filters, Search, read, wording
from .shapes import StepShape, WorkflowShape, WorkflowsPage, workflows_page
from .system import System, system
from .trail import trail
from .trends import trends

__all__ = [
    "BACKGROUND",
    "CAP",
    "TROUBLE",
    "Act",
    "Again",
    "AgentRow",
    "AgentView",
    "AgentsPage",
    "Filters",
    "IncidentDetail",
    "IncidentFilters",
    "IncidentPage",
    "IncidentRow",
    "Letter",
    "LettersPage",
    "OperationDetail",
    "OperationFilters",
    "OperationPage",
    "Outlook",
    "Overview",
    "Place",
    "Search",
    "Shell",
    "StepDetail",
    "StepShape",
    "System",
    "TaskDetail",
    "TaskPage",
    "WorkflowShape",
    "WorkflowsPage",
    "again",
    "agent_row",
    "agents",
    "agents_page",
    "alert_by_id",
    "assignable",
    "count",
    "counts",
    "database_now",
    "ever_tried",
    "hit_of",
    "hold_by_id",
    "hold_in_force",
    "incident_by_id",
    "incident_detail",
    "incidents",
    "left_out",
    "letters",
    "matching",
    "open_alerts",
    "operation_by_id",
    "operation_detail",
    "operations",
    "overview",
    "read",
    "saved_views",
    "shell",
    "standing",
    "step_by_id",
    "system",
    "task_by_id",
    "task_detail",
    "task_row",
    "tasks",
    "top",
    "trail",
    "trends",
    "undo_preview",
    "waiting_because",
    "who_acknowledged",
    "who_closed",
    "who_decided",
    "who_held",
    "who_operated",
    "who_prioritized",
    "who_probed",
    "who_released",
    "who_requeued",
    "who_undid",
    "who_was_first",
    "why_each",
    "wording",
    "workflows_page",
]
