"""Incidents: failures grouped by cause, their counts, and the state of each cause.

A transaction that changes a step's failures, its error state or its task's value adds tallies in the
same transaction (`tallies`). Tallies are rows of their own, so concurrent failures never wait for each
other. The housekeeper adds them up (`aggregation`). It alone decides the state of an incident, except
for what people do (`actions`).
"""
