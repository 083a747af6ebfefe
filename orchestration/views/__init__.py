"""The operators' dashboard: pages that show the state store, and one act, the resubmission."""

from .pages import overview, task, task_list
from .resubmission import resubmit

__all__ = ["overview", "resubmit", "task", "task_list"]
