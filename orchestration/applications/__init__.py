"""What applications see of the engine: they submit tasks and receive status messages.

Here: tokens, submissions, status messages and their delivery, the progress of a task.
Not here: changes of tasks; applications ask for those by requests (`task_requests`).
"""
