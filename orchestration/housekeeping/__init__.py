"""The housekeeper: periodic work that no step waits for (P3).

Here: its sweep over bulk operations, incidents, statistics, alerts, ended holds, dead letters.
Not here: recovery of steps (`supervisor`).
"""
