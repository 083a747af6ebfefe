"""Rules for admins who change accounts, and the records that the two-person rule reads."""

from collections.abc import Iterable

from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.forms import ModelForm

from orchestration.models.person import TieKind
from orchestration.people import accounts


def may_touch(admin: User, user: User) -> bool:
    """Return whether an admin may change an account: not the own one, nor one with more rights."""
    if admin.is_superuser:
        return True
    if user.pk == admin.pk or user.is_superuser:
        return False
    # of an account that is not active: what it had, and can have again
    held = User(pk=user.pk, is_active=True).get_all_permissions()
    return held <= admin.get_all_permissions()


def may_give(admin: User, groups: QuerySet[Group]) -> QuerySet[Group]:
    """Return those of `groups` that hold no right which the admin lacks."""
    held = admin.get_all_permissions()
    more = [
        group.pk
        for group in groups.prefetch_related("permissions__content_type")
        if not _rights(group) <= held
    ]
    return groups.exclude(pk__in=more)


def record(form: "ModelForm[User]", *, by: User, created: bool) -> None:
    """Keep what a saved form did to an account that lets `by` use it, or that gives it rights."""
    if created:
        accounts.tie(form.instance, by=by, kinds=[TieKind.CREATED])
        return
    kinds = []
    if "email" in form.changed_data:
        kinds.append(TieKind.EMAIL)  # where a link to set a password is sent
    if _gains(form):
        kinds.append(TieKind.RIGHTS)
    accounts.tie(form.instance, by=by, kinds=kinds)


def unconfirmed(user: User) -> list[str]:
    """Return the unconfirmed acts that set up an account, as text."""
    ties = accounts.open_ties(user.pk)
    names = dict(
        User.objects.filter(id__in={tie.set_up_by for tie in ties}).values_list("id", "username")
    )
    return [
        f"{names.get(tie.set_up_by, tie.set_up_by)} {tie.get_kind_display()}, {tie.at:%Y-%m-%d %H:%M} UTC"
        for tie in ties
    ]


def _gains(form: "ModelForm[User]") -> bool:
    """Return whether a form gives rights: a group, a permission, or a flag that was off."""
    for name in ("groups", "user_permissions"):
        if name in form.changed_data and set(form.cleaned_data[name]) - _former(form, name):
            return True
    return any(
        name in form.changed_data and form.cleaned_data[name]
        for name in ("is_active", "is_staff", "is_superuser")
    )


def _former(form: "ModelForm[User]", name: str) -> set[object]:
    former: Iterable[object] = form.initial.get(name) or ()
    return set(former)


def _rights(group: Group) -> set[str]:
    return {
        f"{permission.content_type.app_label}.{permission.codename}"
        for permission in group.permissions.all()
    }
