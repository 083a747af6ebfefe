"""A person who acts: by an account, or by a name that was given in a shell."""

from dataclasses import dataclass
from typing import Self

from django.contrib.auth.models import User

SHELL = 0  # stands for an account where acts are counted: all shells together are one person


@dataclass(frozen=True, kw_only=True)
class Person:
    """Who acts; `user` is the id of the account, or None in a shell, which checks no password."""

    name: str
    user: int | None = None

    @classmethod
    def of(cls, user: User) -> Self:
        """Return the person who is signed in with an account."""
        return cls(name=user.get_username(), user=user.pk)

    def may(self, *permissions: str) -> bool:
        """Return whether the account is active and holds all permissions now; a shell holds all."""
        if self.user is None:
            return True
        user = User.objects.filter(id=self.user, is_active=True).first()
        return user is not None and user.has_perms(permissions)
