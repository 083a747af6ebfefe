"""Messages and submissions that failed by themselves: kept, retried, closed.

Not here: failed steps; those are a task's own state (`transitions.failures`).
"""
