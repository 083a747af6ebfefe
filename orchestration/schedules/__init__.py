"""Schedules: rows by which the housekeeper submits tasks, and what changes these rows.

Here: the duty that submits what is due, and what code, applications and operators do to schedules.
Not here: when a schedule is due (`decisions.due_times`), and what becomes of it (`decisions.schedule`).
"""
