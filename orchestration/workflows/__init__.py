"""Workflows and their steps, as applications declare them: plain data, without a database."""
