"""The operators' dashboard: pages that show the state store, and one act, the resubmission."""

from .listing import task_list
from .overview import overview
from .resubmission import resubmit
from .task import task

__all__ = ["overview", "resubmit", "task", "task_list"]
