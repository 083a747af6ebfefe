"""The demo's customers: made up, and their orders like any other."""

import random
from urllib.request import urlopen

import pytest
from django.core.management import CommandError, call_command

from orchestration import submission
from orders.demo import Shoppers
from orders.management.commands.demo_traffic import Switch
from orders.models import Order, Placement
from tests.shop import products
from tests.unit.test_sandbox_kit import process

pytestmark = pytest.mark.django_db


def test_traffic_is_orders_that_are_taken(capsys):
    products()
    call_command("demo_traffic", rate=200, count=12, seed=7)
    while submission.take(100):
        pass
    assert Order.objects.count() == 12
    assert set(Order.objects.values_list("language", flat=True)) == {"de", "en"}
    assert "12 orders placed" in capsys.readouterr().err


def test_the_switch_on_the_sandboxs_page_is_obeyed(settings, tmp_path):
    products()
    with process(tmp_path) as (_, port):
        settings.SANDBOX_URL = f"http://127.0.0.1:{port}"
        assert Switch().wanted(0) == 0
        urlopen(f"{settings.SANDBOX_URL}/demand/switch", data=b"rate=20").close()  # noqa: S310
        call_command("demo_traffic", switch=True, count=3, seed=7)
        assert Switch().wanted(3) == 20
    assert Placement.objects.count() == 3
    assert Switch().wanted(3) == 0  # nobody there to ask


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
