"""The application of allauth that lists sessions."""

from allauth.usersessions.apps import UserSessionsConfig


class SessionsConfig(UserSessionsConfig):
    """Has the table, and leaves its rows to `session_list.py`: allauth would keep each cookie's value."""

    default = False

    def ready(self) -> None:
        """Wait for no signal."""
