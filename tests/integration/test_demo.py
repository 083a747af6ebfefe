"""The demo's customers: made up, and their orders like any other."""

import io
import json
import random
import signal
from urllib.request import urlopen
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from orchestration import submission
from orders import mending, scenes
from orders.demo import Shoppers
from orders.management.commands.demo_traffic import Switch
from orders.models import Order, Placement
from tests.shop import declined, finish_all, placed, products
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


@pytest.fixture
def sandbox(settings, tmp_path):
    """Have a sandbox with a fault that is not the demo's; return how to ask for the faults."""
    products()
    with process(tmp_path) as (_, port):
        settings.SANDBOX_URL = f"http://127.0.0.1:{port}"
        address = f"{settings.SANDBOX_URL}/faults"
        urlopen(address, data=b'{"fault": "slow", "partner": "mail"}').close()  # noqa: S310

        def faults() -> list[str]:
            with urlopen(address) as answer:  # noqa: S310
                return [fault["fault"] for fault in json.load(answer)["faults"]]

        yield faults


def test_scenes_take_their_own_faults_away_and_no_others(sandbox):
    most = 0

    def count(_line):
        nonlocal most
        most = max(most, len(sandbox()))

    played = scenes.play(count, patience=0)
    assert played == Placement.objects.count()
    assert most > 5
    assert sandbox() == ["slow"]


def test_scenes_that_are_broken_off_leave_no_fault(sandbox):
    class Terminal(io.StringIO):
        def write(self, text):
            if "refused by the shipper" in text:
                assert len(sandbox()) > 5
                signal.raise_signal(signal.SIGTERM)
            return super().write(text)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit):
        call_command("demo_orders", stderr=Terminal())
    assert sandbox() == ["slow"]
    assert signal.getsignal(signal.SIGTERM) == before


def test_an_order_is_at_rest_when_it_ended_or_somebody_must_act(client):
    products()
    assert not scenes.at_rest(uuid4())
    order = placed(client, sku_0=1)
    assert not scenes.at_rest(order)
    finish_all()
    assert scenes.at_rest(order)
    order = declined(client, sku_0=1)
    assert scenes.at_rest(order)
    mending.other_card(order, 1, "pm_card_visa")
    assert not scenes.at_rest(order)
