"""An address of something that cannot be there is answered by 404, and never by a failure."""

import pytest
from django.contrib.contenttypes.models import ContentType
from django.test import Client

from orchestration.models import Policy, Task
from tests.support.operators import browser, person

pytestmark = pytest.mark.django_db
HUGE = 10**30

ODD = [
    ("get", "/ops/agents/%00/probe/"),
    ("post", "/ops/agents/%00/probe/"),
    ("post", "/ops/agents/unknown/probe/"),
    ("get", f"/ops/incidents/{HUGE}/"),
    ("get", f"/ops/operations/{HUGE}/"),
    ("post", f"/ops/operations/{HUGE}/confirm/"),
    ("get", f"/ops/steps/{HUGE}/change/"),
    ("get", "/ops/tasks/%00/"),
    ("get", "/ops/started/greet/%00/"),
    ("get", "/ops/started/%00/x/"),
    ("post", "/ops/export/%00/"),
    ("get", "/products/%00/"),
    ("get", "/products/%0A/"),
    ("get", "/%0A"),
    ("get", "/admin/r/1/1/"),
    ("get", f"/admin/r/{HUGE}/1/"),
    ("get", "/admin/r/%00/%00/"),
    ("get", "/django-rq/"),
    ("get", "/django-rq/schedulers/0/"),
]
ADMIN = [
    "/admin/orders/product/%00/change/",
    "/admin/orders/product/%00/history/",
    "/admin/orders/order/x/change/",
    "/admin/orchestration/policy/%00/change/",
    f"/admin/auth/user/{HUGE}/change/",
    "/admin/auth/user/%00/password/",
    f"/admin/orchestration/task/{HUGE}/change/",
    f"/admin/orchestration/step/{HUGE}/change/",
    f"/admin/orchestration/alert/{HUGE}/change/",
    f"/admin/orchestration/application/{HUGE}/change/",
    f"/admin/orchestration/policy/{HUGE}/history/",
    *(
        f"/admin/orchestration/{model}/{row}/{view}"
        for model in (
            "policy",
            "steppolicy",
            "supervisorpolicy",
            "retentionpolicy",
            "fairnessweight",
            "schedule",
        )
        for row in ("x", "%00", HUGE)
        for view in ("history/", "change/?version=1")
    ),
    "/admin/django_rq/dashboard/",
]


@pytest.fixture
def boss():
    """The superuser's browser, which is shown pages of errors as in production."""
    client = browser(person("boss", is_staff=True, is_superuser=True))
    client.raise_request_exception = False
    return client


@pytest.mark.parametrize(("method", "address"), ODD)
def test_address_of_nothing_is_not_found(boss, method, address):
    assert getattr(boss, method)(address).status_code == 404


@pytest.mark.parametrize("address", ADMIN)
def test_admins_address_of_nothing_does_not_fail(boss, address):
    assert boss.get(address).status_code in {302, 404}  # the admin leads to its index


@pytest.mark.parametrize("model", [ContentType, Policy, Task])
def test_view_on_site_of_what_has_no_page_is_not_found(boss, model):
    kind = ContentType.objects.get_for_model(model)
    assert boss.get(f"/admin/r/{kind.pk}/1/").status_code == 404


def test_view_on_site_of_each_kind_does_not_fail(boss):
    for kind in ContentType.objects.all():
        assert boss.get(f"/admin/r/{kind.pk}/x/").status_code == 404


@pytest.mark.parametrize(
    "address", ["orders/%0A", "%0A", "orders/x", "nowhere", "orders/%00/cancel"]
)
def test_unknown_address_of_the_api_is_a_problem(address):
    answer = Client().get(f"/api/{address}")
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
