"""Functions of Django's Tasks (`@task`) as workflows of one step; needs the package `django-tasks`.

An application of its own: `orchestration.functions` in INSTALLED_APPS declares an agent and a workflow for
each queue of the backends in TASKS. Nothing else of the engine imports it.
"""
