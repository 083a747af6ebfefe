"""Decisions as pure functions: plain data in, plain data out.

Here: what follows a failure, how many requests may go, what becomes ready, how a task is undone,
why a step waits. Not here: queries, clocks, settings. The simulation runs these very functions.
"""
