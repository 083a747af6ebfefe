"""Processes of which one leads and sweeps, the others stand by: supervisors, and housekeepers (P4).

What a sweep does is not known here.
"""
