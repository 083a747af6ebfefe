"""The application of the project itself."""

from typing import Any

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in


class SasWebConfig(AppConfig):
    """Has each login of staff begin a session of staff."""

    name = "sasweb"

    def ready(self) -> None:
        """Wait for logins; workers, which have none, load nothing for it."""
        user_logged_in.connect(_keep_apart, dispatch_uid="sasweb.keep_apart")


def _keep_apart(**login: Any) -> None:
    from .staff import sessions  # it needs the models

    sessions.keep_apart(request=login["request"], user=login["user"])
