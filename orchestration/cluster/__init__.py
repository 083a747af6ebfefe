"""Leader election, heartbeats and instance ids of the processes of an installation.

Here: leader election, heartbeats, ids of instances, points at which drills end a process.
Not here: what a leader does; see `supervision` and `housekeeping`.
"""
