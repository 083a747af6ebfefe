"""Accounts in the admin: only a superuser may give more than roles."""

from typing import TYPE_CHECKING, Any

from allauth.account.admin import EmailAddress
from allauth.mfa.admin import Authenticator
from allauth.usersessions.admin import UserSession
from django import forms
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Exists, ManyToManyField, OuterRef, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path, reverse

from orchestration.models.person import TieKind
from orchestration.people import accounts
from orchestration.people.roles import ROLES

from .account_admin import GuardedUserAdmin
from .account_rules import may_give, may_touch
from .accounts import second_factor, session_list

if TYPE_CHECKING:  # generic for the type checker only
    Choices = forms.ModelMultipleChoiceField[Permission]
else:
    Choices = forms.ModelMultipleChoiceField

POWERS = {"is_superuser", "user_permissions"}  # that only a superuser may give


class Powers(Choices):
    """Permissions as checkboxes, each labelled with its application and its name."""

    def label_from_instance(self, obj: Permission) -> str:
        """Return the words beside the box."""
        label = obj.content_type.app_label
        known = apps.app_configs.get(label)
        return f"{known.verbose_name if known else label}: {obj.name}"


def ticked(field: "ManyToManyField[Any, Any]", **options: Any) -> dict[str, Any]:
    """Return options for a field of boxes: Django's pair of lists has parts without a name."""
    if field.related_model is Permission:
        options["form_class"] = Powers
    return {**options, "widget": forms.CheckboxSelectMultiple}


# the last three would show secrets, and let an admin in as another user by themselves
admin.site.unregister([User, Group, Authenticator, EmailAddress, UserSession])


@admin.register(Group)
class PowersAdmin(GroupAdmin):
    """Groups of permissions: the roles, which have at the least what they need, and others."""

    filter_horizontal = ()

    def formfield_for_manytomany(
        self,
        db_field: "ManyToManyField[Any, Any]",
        request: HttpRequest | None = None,
        **kwargs: Any,
    ) -> Any:
        """Offer each permission as a box to tick."""
        return super().formfield_for_manytomany(db_field, request, **ticked(db_field, **kwargs))


@admin.register(User)
class RoleAdmin(GuardedUserAdmin):
    """Accounts and their roles; each user may change those below alone, and not the own one."""

    change_form_template = "admin/auth/user/change_form.html"
    list_display = (
        "username", "email", "roles", "is_staff", "is_superuser", "has_second_factor", "last_login",
    )  # fmt: skip
    list_filter = ("groups", "is_staff", "is_superuser", "is_active")
    filter_horizontal = ()
    readonly_fields = ("last_login", "date_joined")  # facts, not settings

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """Read the roles and second factors of a list at once."""
        devices = Authenticator.objects.filter(user=OuterRef("pk"))
        users = super().get_queryset(request).prefetch_related("groups")
        return users.annotate(has_second_factor=Exists(devices))

    @admin.display(description="roles")
    def roles(self, user: User) -> str:
        """Return the groups that a user is in."""
        return ", ".join(sorted(group.name for group in user.groups.all()))

    @admin.display(description="second factor", boolean=True)
    def has_second_factor(self, user: User) -> bool:
        """Return whether a user has set one up."""
        return bool(user.has_second_factor)  # type: ignore[attr-defined] # annotated

    def get_urls(self) -> list[URLPattern]:
        """Add the page that resets a second factor."""
        view = self.admin_site.admin_view(self.reset_second_factor)
        address = "<int:user_id>/second-factor/"
        return [path(address, view, name="auth_user_second_factor"), *super().get_urls()]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Say whether the user's second factor may be reset."""
        user = self.get_object(request, object_id)
        context = {"resets": user is not None and self._may_reset(request, user)}
        return super().change_view(
            request, object_id, form_url, {**context, **(extra_context or {})}
        )

    def reset_second_factor(self, request: HttpRequest, user_id: int) -> HttpResponse:
        """Remove the second factor of a user who has lost it; sessions that have shown it end."""
        user = self.get_object(request, str(user_id))
        if user is None:
            raise Http404
        if not self._may_reset(request, user):
            raise PermissionDenied
        to = reverse("admin:auth_user_change", args=[user.pk])
        if request.method == "POST":
            with transaction.atomic():
                second_factor.remove(user)
                session_list.end(user)
                second_factor.record(_of(request), user, "Second factor reset.")
                # who resets it could set up their own
                accounts.tie(user, by=_of(request), kinds=[TieKind.FACTOR])
            self.message_user(request, f"The second factor of {user} is reset.")
            return HttpResponseRedirect(to)
        context = {
            **self.admin_site.each_context(request),
            "title": f"Reset the second factor of {user}",
            "opts": self.opts,
            "original": user,
            "back": to,
        }
        return render(request, "admin/auth/user/second_factor.html", context)

    def _may_reset(self, request: HttpRequest, user: User) -> bool:
        """Return whether a user's second factor may be reset: never one's own."""
        has_one = bool(second_factor.devices(user))
        return has_one and user != _of(request) and self.has_change_permission(request, user)

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Leave out the fields that grant powers the user may not grant."""
        fieldsets = super().get_fieldsets(request, obj)
        if _of(request).is_superuser:
            return fieldsets
        return [
            (title, {**options, "fields": [f for f in options["fields"] if f not in POWERS]})
            for title, options in fieldsets
        ]

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Keep the own account, and those with more rights, out of the reach of admins."""
        return super().has_change_permission(request, obj) and _may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Keep the own account, and those with more rights, out of the reach of admins."""
        return super().has_delete_permission(request, obj) and _may_touch(request, obj)

    def formfield_for_manytomany(
        self, db_field: "ManyToManyField[Any, Any]", request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Offer the roles to tick; other groups may hold any power."""
        if db_field.name == "groups" and not _of(request).is_superuser:
            kwargs["queryset"] = may_give(_of(request), Group.objects.filter(name__in=ROLES))
        return super().formfield_for_manytomany(db_field, request, **ticked(db_field, **kwargs))


def _of(request: HttpRequest) -> User:
    user: Any = request.user
    return user  # type: ignore[no-any-return]


def _may_touch(request: HttpRequest, user: User | None) -> bool:
    return user is None or may_touch(_of(request), user)
