"""Assurance: what checks the engine and clears up after it, an application that the engine runs without.

Here: audit, doctor, retention with its archive, and reconciliation with the services' ledgers.
"""
