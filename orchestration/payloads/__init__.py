"""Payloads as data: templates, keys, limits, and how amounts and texts are written.

Here: what reads and writes a payload without a workflow, an agent or a database.
Not here: what an action accepts; see `agents.payload_schemas`.
"""
