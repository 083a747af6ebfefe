"""The audit: checks of the engine's invariants against its tables and the services' ledgers.

Each check is one statement over all tasks that returns the violations of an invariant. The audit
corrects nothing: a violation names the task, the problem and the remedy.

- `runner.run` reads the ledgers, checks everything in one snapshot, stores the result, raises alerts.
- `runner.due` is true when the next run by itself is due.
- `snapshot.prepare`, `snapshot.fill` and `runner.find` are its parts, for callers with their own connection.
"""
