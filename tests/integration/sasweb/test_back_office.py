"""The admin's index: its groups, what each role sees, and the installation's badge."""

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group

from orchestration.people.roles import ROLES
from sasweb.back_office import GROUPS
from tests.support.operators import browser, person
from tests.support.page import page

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
    index = page(client.get("/admin/"))
    assert index.texts("caption") == list(GROUPS)
    assert index.only("#site-name").all("a")[0].text == admin.site.site_header


def test_badge_names_the_installation(client, settings):
    settings.ENVIRONMENT = "production"
    response = client.get("/admin/")
    assert page(response).only("span.environment.production").text == "production"
    assert " style=" not in response.text


@pytest.mark.parametrize(
    ("role", "seen"),
    [
        ("viewer", []),
        ("operator", []),
        ("admin", [name for name in GROUPS if name not in NOT_OF_THE_ROLE]),
    ],
)
def test_index_shows_only_what_the_role_may_see(role, seen):
    assert role in ROLES
    assert page(member(role).get("/admin/")).texts("caption") == seen
