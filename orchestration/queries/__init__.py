"""What the operators' dashboard reads. Nothing here writes, and every count is capped.

Each page costs a constant number of queries over indexes, however many rows there are.
"""

from .agents import agents, database_now
from .detail import StepDetail, TaskDetail, step_by_id, task_detail, who_resubmitted
from .listing import Filters, TaskPage, tasks
from .outlook import AgentView, Outlook
from .overview import CAP, Overview, overview
from .preview import undo_preview

__all__ = [
    "CAP",
    "AgentView",
    "Filters",
    "Outlook",
    "Overview",
    "StepDetail",
    "TaskDetail",
    "TaskPage",
    "agents",
    "database_now",
    "overview",
    "step_by_id",
    "task_detail",
    "tasks",
    "undo_preview",
    "who_resubmitted",
]
