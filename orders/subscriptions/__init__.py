"""Subscriptions: what customers may do with one, and the daily run that places the orders due."""
