"""The subjects of `manage.py doctor`: database and roles, Redis, processes, each with its checks.

Here belongs what is wrong with a configuration before it costs anything. What goes wrong while tasks
run is an alert (`monitoring`, `supervision`), and what is wrong with declarations a system check
(`checks`). Settings of a project are checked by the `doctor` module of its application.
"""
