"""Alerts, and how they reach people.

Here: alert rows, notifications and their channels, signed webhooks.
Not here: what raises an alert; that is the part of the engine that notices it.
"""
