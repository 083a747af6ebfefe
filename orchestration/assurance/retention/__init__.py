"""Retention: what ended long ago is removed, or written to files and read back.

Here: ended tasks with all that belongs to them, and old rows of other tables.
Not here: dry runs and roll-ups, which `operations` and the console prune.
"""
