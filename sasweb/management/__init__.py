"""The project's commands."""
