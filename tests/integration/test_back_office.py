"""The admin as a whole: who gets where, groups that say what is in them, which installation it is."""

import pytest
from django.apps import apps
from django.contrib import admin

from orchestration.roles import ROLES
from sasweb.back_office import GROUPS
from tests.operators import browser, person, words

# not the role's: the shop's own command gives the one, superusers alone see the other
ELSEWHERE = ("Catalogue and orders", "Records: sign-ins")
pytestmark = pytest.mark.django_db
admin.autodiscover()  # as the addresses do, which nobody may have asked for yet


@pytest.fixture
def client():
    return browser(person("ada", is_staff=True, is_superuser=True))


def member(role):
    """Return a member of staff with a role."""
    from django.contrib.auth.models import Group

    user = person(f"{role}-1", is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    return browser(user)


def test_every_model_has_its_place_in_a_group(client):
    listed = {label for labels in GROUPS.values() for label in labels}
    shown = {
        model._meta.label
        for model in admin.site._registry
        if model._meta.app_label in {"orchestration", "orders", "auth", "axes"}
    }
    assert shown == listed
    assert all(apps.get_model(label) for label in listed)


def test_its_pages_pass_djangos_own_checks():
    assert admin.site.check(None) == []


def test_the_index_names_the_groups_in_their_order(client):
    page = words(client.get("/admin/"))
    places = [page.index(name) for name in GROUPS]
    assert places == sorted(places)
    assert "Kettlewell · Order processing" in page


def test_the_badge_says_which_installation_it_is(client, settings):
    settings.ENVIRONMENT = "production"
    page = client.get("/admin/")
    assert '<span class="environment production">production</span>' in page.text
    assert " style=" not in page.text


@pytest.mark.parametrize(
    ("role", "seen", "unseen"),
    [
        ("viewer", [], list(GROUPS)),
        ("operator", [], list(GROUPS)),
        ("admin", [name for name in GROUPS if name not in ELSEWHERE], list(ELSEWHERE)),
    ],
)
def test_each_sees_only_what_the_role_may(role, seen, unseen):
    assert role in ROLES
    page = words(member(role).get("/admin/"))
    assert all(name in page for name in seen)
    assert all(name not in page for name in unseen)
