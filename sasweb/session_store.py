"""Sessions in the database by digests of their keys; those of staff are apart.

Who reads the table gets no cookie from it. The key of a session of staff begins with a mark, and so does its
row's: the database role of the shop reaches no such row (`manage.py grant_shop`), so a session of that role's
making is none of staff.
"""

import base64
import hashlib
from typing import Any

from django.contrib.sessions.backends import db
from django.contrib.sessions.base_session import AbstractBaseSession
from django.utils import timezone

STAFF_KEY = "staff-"  # of a cookie
STAFF_ROW = "staff."  # of a row: no digest has a dot, so none is taken for one of these


def digest(key: str) -> str:
    """Return under which name a session is kept: 192 bits of a digest fit into Django's column."""
    name = base64.urlsafe_b64encode(hashlib.sha256(key.encode()).digest()[:24]).decode()
    return f"{STAFF_ROW}{name}" if key.startswith(STAFF_KEY) else name


class SessionStore(db.SessionStore):
    """The sessions of this project."""

    _begins_for_staff = False

    @property
    def of_staff(self) -> bool:
        """Whether it began with a login of staff."""
        return (self.session_key or "").startswith(STAFF_KEY)

    def begin_for_staff(self) -> None:
        """Go on as a session of staff, under another key."""
        self._begins_for_staff = True
        self.cycle_key()
        self._begins_for_staff = False

    def exists(self, session_key: str) -> bool:
        """Return whether a key is taken."""
        return super().exists(digest(session_key))

    def delete(self, session_key: str | None = None) -> None:
        """Remove the session of a key, or this one."""
        if key := session_key or self.session_key:
            super().delete(digest(key))

    def create_model_instance(self, data: dict[str, Any]) -> AbstractBaseSession:
        """Return the row."""
        row = super().create_model_instance(data)
        row.session_key = digest(row.session_key)
        return row

    def _get_session_from_db(self) -> AbstractBaseSession | None:
        rows = self.model.objects.filter(
            session_key=digest(self.session_key or ""), expire_date__gt=timezone.now()
        )
        row = rows.first() if self.session_key else None
        if row is None:
            self._session_key = None
        return row

    def _get_new_session_key(self) -> str:
        key: str = super()._get_new_session_key()  # type: ignore[misc] # stubs lack it
        return f"{STAFF_KEY}{key}" if self._begins_for_staff or self.of_staff else key
