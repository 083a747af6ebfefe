"""Run supervisors and housekeepers: one process of each kind leads and sweeps (P4).

Here: the command, the lease, the run of a list of duties, the supervisor's decisions and doorbells.
Not here: the lists of duties (`supervisor`, `housekeeping`), and writes of steps (`transitions`).
"""
