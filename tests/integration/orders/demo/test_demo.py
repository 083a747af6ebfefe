"""The demo's customers and scenarios."""

import io
import json
import random
import signal
from urllib.request import urlopen
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from orchestration import submission
from orders.demo import scenarios
from orders.demo.shoppers import Shoppers
from orders.lifecycle import changes
from orders.management.commands.demo_traffic import Switch
from orders.models import Order, Placement
from tests.support.sandbox import process
from tests.support.shop import declined, placed, products

pytestmark = pytest.mark.django_db


def test_traffic_places_orders(capsys):
    products()
    call_command("demo_traffic", rate=200, count=12, seed=7)
    while submission.take(100):
        pass
    assert Order.objects.count() == 12
    assert set(Order.objects.values_list("language", flat=True)) == {"de", "en"}
    assert "12 orders placed" in capsys.readouterr().err


def test_traffic_has_the_rate_of_the_sandboxs_switch(settings, tmp_path):
    products()
    with process(tmp_path) as (_, port):
        settings.SANDBOX_URL = f"http://127.0.0.1:{port}"
        assert Switch().target_rate(0) == 0
        urlopen(f"{settings.SANDBOX_URL}/demand/switch", data=b"rate=20").close()  # noqa: S310
        call_command("demo_traffic", switch=True, count=3, seed=7)
        assert Switch().target_rate(3) == 20
    assert Placement.objects.count() == 3
    assert Switch().target_rate(3) == 0  # the sandbox has ended


def test_traffic_with_a_seed_is_repeatable():
    products()
    for _ in range(2):
        Shoppers(chance=random.Random(1)).buy()  # noqa: S311 - no secret
    submission.take(100)
    first, other = Order.objects.all()
    assert (first.name, first.street, first.total) == (other.name, other.street, other.total)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"rate": 0}, "--rate must be more than 0"),
        ({"rate": 1000}, "at most 200"),
        ({"rate": 1, "count": 0}, "--count must be at least 1"),
        ({"rate": 1}, "run `manage.py seed` first"),
    ],
)
def test_traffic_with_invalid_options(options, problem):
    with pytest.raises(CommandError, match=problem):
        call_command("demo_traffic", **options)


def test_scenarios_without_a_sandbox_play_the_first_once(settings):
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
    """Serve a sandbox with a fault that is not the demo's; return a function that lists the faults."""
    products()
    with process(tmp_path) as (_, port):
        settings.SANDBOX_URL = f"http://127.0.0.1:{port}"
        address = f"{settings.SANDBOX_URL}/faults"
        urlopen(address, data=b'{"fault": "slow", "partner": "mail"}').close()  # noqa: S310

        def faults() -> list[str]:
            with urlopen(address) as answer:  # noqa: S310
                return [fault["fault"] for fault in json.load(answer)["faults"]]

        yield faults


def test_scenarios_remove_only_their_own_faults(sandbox):
    most = 0

    def count(_line):
        nonlocal most
        most = max(most, len(sandbox()))

    played = scenarios.play(count, timeout=0)
    assert played == Placement.objects.count()
    assert most > 5
    assert sandbox() == ["slow"]


def test_interrupted_scenarios_leave_no_fault(sandbox):
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


def test_order_has_settled_when_ended_or_in_error(run, client):
    products()
    assert not scenarios.has_settled(uuid4())
    order = placed(client, sku_0=1)
    assert not scenarios.has_settled(order)
    run.go()
    assert scenarios.has_settled(order)
    order = declined(client, sku_0=1)
    assert scenarios.has_settled(order)
    changes.other_card(order, 1, "pm_card_visa")
    assert not scenarios.has_settled(order)
