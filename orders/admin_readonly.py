"""What the admin shows and does not change."""

from typing import Any

from django.http import HttpRequest


class ReadOnly:
    """Denies changes: these rows are what was sent to the partners."""

    def has_add_permission(self, _request: HttpRequest, _parent: Any = None) -> bool:
        """Refuse."""
        return False

    def has_change_permission(self, _request: HttpRequest, _thing: Any = None) -> bool:
        """Refuse."""
        return False

    def has_delete_permission(self, _request: HttpRequest, _thing: Any = None) -> bool:
        """Refuse."""
        return False
