"""The console as a Django application: operators' pages, their queries, the admin, figures over time."""

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    """Brings pages, template tags and commands. Its tables are made by the engine's migrations."""

    name = "orchestration.console"
    label = "orchestration_console"
    verbose_name = "orchestration: console"
