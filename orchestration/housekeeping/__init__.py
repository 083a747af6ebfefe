"""The housekeeper's work: all that goes on beside the tasks, and that no step waits for (P3).

Bulk operations, incidents, figures, alerts about the machinery, holds that end, dead letters: what is
no recovery of a step, and so is not the supervisor's.
"""
