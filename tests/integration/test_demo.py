"""The demo's customers: made up, and their orders like any other."""

import random

import pytest
from django.core.management import CommandError, call_command

from orchestration import submission
from orders.demo import Shoppers
from orders.models import Order, Placement
from tests.shop import products

pytestmark = pytest.mark.django_db


def test_traffic_is_orders_that_are_taken(capsys):
    products()
    call_command("demo_traffic", rate=200, count=12, seed=7)
    while submission.take(100):
        pass
    assert Order.objects.count() == 12
    assert set(Order.objects.values_list("language", flat=True)) == {"de", "en"}
    assert "12 orders placed" in capsys.readouterr().err


def test_the_same_seed_brings_the_same_customers():
    products()
    for _ in range(2):
        Shoppers(chance=random.Random(1)).buy()  # noqa: S311 - no secret
    submission.take(100)
    one, other = Order.objects.all()
    assert (one.name, one.street, one.total) == (other.name, other.street, other.total)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"rate": 0}, "--rate must be more than 0"),
        ({"rate": 1000}, "at most 200"),
        ({"rate": 1, "count": 0}, "--count must be at least 1"),
        ({"rate": 1}, "run `manage.py seed` first"),
    ],
)
def test_errors_say_what_to_do(options, problem):
    with pytest.raises(CommandError, match=problem):
        call_command("demo_traffic", **options)


def test_scenes_are_played_once_and_only_with_a_sandbox(settings):
    products()
    settings.SANDBOX_URL = "http://127.0.0.1:9"
    with pytest.raises(CommandError, match="start it, by `make run` say"):
        call_command("demo_orders")
    before = Placement.objects.count()
    assert before  # the first scenes need no faults
    call_command("demo_orders", first=True)
    assert Placement.objects.count() == before
