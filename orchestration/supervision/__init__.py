"""Run supervisors and housekeepers: one process of each kind leads and sweeps (P4).

Here: the command, the lease, the order and isolation of duties, the supervisor's decisions, alerts.
Not here: the lists of duties (`supervisor`, `housekeeping`), and writes of steps (`transitions`).
"""
