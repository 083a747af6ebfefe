"""Accounts in the admin: the admin role gives roles, and no other permissions."""

import pytest
from django.contrib.auth.models import Group, Permission, User

from tests.support.operators import browser, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada():
    user = person("ada", is_staff=True)
    user.groups.add(Group.objects.get(name="admin"))
    return user


def form_of(user, **changes):
    return {"username": user.username, "date_joined_0": "2026-01-01", "date_joined_1": "12:00:00",
            "is_active": "on", **changes}  # fmt: skip


def test_admin_gives_a_role_only(ada):
    bob = person("bob")
    page = browser(ada).get(f"/admin/auth/user/{bob.id}/change/").text
    assert "is_superuser" not in page
    assert "user_permissions" not in page
    role = Group.objects.get(name="lead")
    sent = form_of(bob, groups=[role.id], is_superuser="on")
    assert browser(ada).post(f"/admin/auth/user/{bob.id}/change/", sent).status_code == 302
    bob.refresh_from_db()
    assert [group.name for group in bob.groups.all()] == ["lead"]
    assert bob.is_superuser is False
    assert "lead" in browser(ada).get("/admin/auth/user/").text


def test_admin_cannot_promote_themselves(ada):
    power = Group.objects.create(name="everything")
    sent = form_of(ada, groups=[power.id], is_staff="on", is_superuser="on")
    assert browser(ada).post(f"/admin/auth/user/{ada.id}/change/", sent).status_code == 403
    bob = person("bob")
    answer = browser(ada).post(
        f"/admin/auth/user/{bob.id}/change/", form_of(bob, groups=[power.id])
    )
    assert answer.context["adminform"].form.has_error("groups", "invalid_choice")
    assert not User.objects.get(id=ada.id).is_superuser


@pytest.mark.parametrize("path", ["change/", "password/", "delete/"])
def test_admin_cannot_change_a_superuser(ada, path):
    root = person("root", is_staff=True, is_superuser=True)
    sent = form_of(root, password1="a new one 17", password2="a new one 17", post="yes")
    answer = browser(ada).post(f"/admin/auth/user/{root.id}/{path}", sent)
    assert answer.status_code == 403
    assert User.objects.get(id=root.id).check_password("correct horse")


def test_superuser_may_edit_the_superuser_flag():
    root = person("root", is_staff=True, is_superuser=True)
    page = browser(root).get(f"/admin/auth/user/{root.id}/change/").text
    assert "is_superuser" in page


def test_group_shows_names_of_permissions_and_user_dates_are_read_only():
    root = browser(person("root", is_staff=True, is_superuser=True))
    bob = person("bob")
    group = Group.objects.get(name="lead")
    page = root.get(f"/admin/auth/group/{group.id}/change/").text
    permission = Permission.objects.get(codename="approve")
    assert f'value="{permission.id}"' in page
    assert f"{permission.name}</label>" in page
    held = set(group.permissions.values_list("id", flat=True))
    sent = {"name": "lead", "permissions": sorted(held)[1:]}
    assert root.post(f"/admin/auth/group/{group.id}/change/", sent).status_code == 302
    assert set(group.permissions.values_list("id", flat=True)) == set(sent["permissions"])
    before = bob.date_joined
    assert root.post(f"/admin/auth/user/{bob.id}/change/", form_of(bob)).status_code == 302
    bob.refresh_from_db()
    assert bob.date_joined == before
