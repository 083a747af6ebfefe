"""The admin of accounts with a record of who set up which, for the two-person rule."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse

from orchestration.models.person import TieKind
from orchestration.people import accounts

from .account_rules import record, unconfirmed

if TYPE_CHECKING:  # generic for the type checker only
    Users = UserAdmin[User]
else:
    Users = UserAdmin


class GuardedUserAdmin(Users):
    """Accounts; what one user does to another's is kept until a third one confirms whose it is."""

    actions = ("confirm",)

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Add how the account was set up."""
        return (*super().get_readonly_fields(request, obj), "set_up")

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Show how an account was set up."""
        fieldsets = super().get_fieldsets(request, obj)
        return (
            fieldsets if obj is None else (*fieldsets, ("Second person", {"fields": ("set_up",)}))
        )

    @admin.display(description="set up by, not confirmed")
    def set_up(self, user: User) -> str:
        """Return the unconfirmed acts that set up an account."""
        return "; ".join(unconfirmed(user)) or "-"

    def save_related(
        self, request: HttpRequest, form: "ModelForm[User]", formsets: Any, change: bool
    ) -> None:
        """Keep what was done to another's account, in the same transaction."""
        super().save_related(request, form, formsets, change)
        record(form, by=_user(request), created=not change)

    def user_change_password(
        self,
        request: HttpRequest,
        id: str,  # noqa: A002 - Django's name
        form_url: str = "",
    ) -> HttpResponse:
        """Keep that a password was set for another's account, in the same transaction."""
        with transaction.atomic():
            # found as Django finds it, which reads "+9" as 9, too
            user = self.get_object(request, unquote(id))
            before = user and user.password
            answer = super().user_change_password(request, id, form_url)
            if user:
                user.refresh_from_db(fields=["password"])
                if user.password != before:
                    accounts.tie(user, by=_user(request), kinds=[TieKind.PASSWORD])
        return answer

    @admin.action(
        description="Confirm that the accounts belong to other persons", permissions=["change"]
    )
    def confirm(self, request: HttpRequest, chosen: QuerySet[User]) -> None:
        """End what ties accounts to those that set them up."""
        for user in chosen:
            problem = (
                accounts.confirm(user, by=_user(request))
                if self.has_change_permission(request, user)
                else "you may not change it"
            )
            if problem:
                self.message_user(request, f"{user} is not confirmed: {problem}.", messages.ERROR)
            else:
                self.log_change(request, user, "Confirmed as the account of another person.")
                self.message_user(request, f"{user} is confirmed.")


def _user(request: HttpRequest) -> User:
    user: Any = request.user
    return user  # type: ignore[no-any-return]
