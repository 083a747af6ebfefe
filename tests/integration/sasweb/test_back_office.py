"""The admin's index: its groups, what each role sees, and the installation's badge."""

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group

from orchestration.dashboard.roles import ROLES
from sasweb.back_office import GROUPS
from tests.support.operators import browser, person, words

# not for the admin role: the first needs the shop's permissions, the second a superuser
NOT_OF_THE_ROLE = ("Catalogue and orders", "Records: sign-ins")
pytestmark = pytest.mark.django_db
admin.autodiscover()  # as the URL configuration does, which may not be loaded yet


@pytest.fixture
def client():
    return browser(person("ada", is_staff=True, is_superuser=True))


def member(role):
    """Return a member of staff with a role."""
    user = person(f"{role}-1", is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    return browser(user)


def test_registered_models_are_in_the_groups(client):
    listed = {label for labels in GROUPS.values() for label in labels}
    shown = {
        model._meta.label
        for model in admin.site._registry
        if model._meta.app_label in {"orchestration", "orders", "auth", "axes"}
    }
    assert shown == listed
    assert all(apps.get_model(label) for label in listed)


def test_admin_passes_djangos_checks():
    assert admin.site.check(None) == []


def test_index_lists_the_groups_in_order(client):
    page = words(client.get("/admin/"))
    places = [page.index(name) for name in GROUPS]
    assert places == sorted(places)
    assert admin.site.site_header in page


def test_badge_names_the_installation(client, settings):
    settings.ENVIRONMENT = "production"
    page = client.get("/admin/")
    assert '<span class="environment production">production</span>' in page.text
    assert " style=" not in page.text


@pytest.mark.parametrize(
    ("role", "seen", "unseen"),
    [
        ("viewer", [], list(GROUPS)),
        ("operator", [], list(GROUPS)),
        ("admin", [name for name in GROUPS if name not in NOT_OF_THE_ROLE], list(NOT_OF_THE_ROLE)),
    ],
)
def test_index_shows_only_what_the_role_may_see(role, seen, unseen):
    assert role in ROLES
    page = words(member(role).get("/admin/"))
    assert all(name in page for name in seen)
    assert all(name not in page for name in unseen)
