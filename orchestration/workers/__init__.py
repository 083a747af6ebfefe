"""RQ workers, and the functions that their jobs run.

Here: worker processes and threads, and the job of each queue.
Not here: the work itself; a job delegates and returns.
"""
