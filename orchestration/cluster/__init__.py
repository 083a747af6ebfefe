"""Leader election, duties, heartbeats and instance ids of the processes of an installation.

Here: leader election, what a duty of a leader is, heartbeats, ids of instances, points at which drills end a
process. Not here: the duties; see `supervisor`, `housekeeping`, and modules `duties`.
"""
