"""The operators' dashboard as a Django application."""

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    """Brings the dashboard's template tags; its pages are in `templates/ops/`."""

    name = "orchestration.dashboard"
    label = "dashboard"
