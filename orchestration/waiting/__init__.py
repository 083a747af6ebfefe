"""Why a step or task waits, as alerts, commands and operators' pages say it.

Here: what is asked of the database for that. Not here: the decision itself (`decisions.wait_reasons`).
"""
