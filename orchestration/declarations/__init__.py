"""Problems of applications' declarations, for the system checks.

Nothing here runs a task, or reads the database: what is found must be found before anything starts.
"""
