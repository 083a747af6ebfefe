"""Access to Postgres below the models: statements, batches, and its clock.

Here: set-based SQL, batches that isolate a bad row, the database's clock and its jumps.
Not here: statements about tasks or steps; they belong to the package of their subject.
"""
