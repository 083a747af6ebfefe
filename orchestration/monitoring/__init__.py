"""Monitor the engine itself while it runs.

Here: conditions that raise alerts when they last, and the canary task.
Not here: the figures on pages (the console), and the invariants (assurance).
"""
