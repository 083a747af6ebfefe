"""What a project needs to have the engine: its settings, and the beginnings of an application on it.

Nothing of it runs while tasks are processed.
"""
