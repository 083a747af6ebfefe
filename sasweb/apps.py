"""The application of the project itself."""

from typing import Any

from allauth.account import signals
from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in


class SasWebConfig(AppConfig):
    """Has each login of staff begin a session of staff, and sessions listed and ended."""

    name = "sasweb"

    def ready(self) -> None:
        """Wait for logins; workers, which have none, load nothing for it."""
        user_logged_in.connect(_keep_apart, dispatch_uid="sasweb.keep_apart")
        signals.user_logged_in.connect(_begin, dispatch_uid="sasweb.begin")
        signals.password_changed.connect(_end_others, dispatch_uid="sasweb.end_others")
        signals.password_reset.connect(_end_all, dispatch_uid="sasweb.end_all")


def _keep_apart(**login: Any) -> None:
    from .staff import sessions  # it needs the models

    sessions.keep_apart(request=login["request"], user=login["user"])


def _begin(**login: Any) -> None:
    from .accounts import session_list
    from .staff import sessions

    sessions.begin(login["request"], login["user"])
    session_list.note(login["request"], login["user"])


def _end_others(**change: Any) -> None:
    from .accounts import session_list

    session_list.note(change["request"], change["user"])
    session_list.end(change["user"], but=change["request"])


def _end_all(**change: Any) -> None:
    from .accounts import session_list

    session_list.end(change["user"])
