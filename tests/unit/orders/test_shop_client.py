"""The example client, without a shop."""

import inspect
import re
import socket
import traceback

import pytest

from docs.examples import shop_client
from docs.examples.shop_client import Shop, Unreachable
from orders.api.app import api


def test_address_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(shop_client, "TRIES", 1)
    with socket.socket() as taken:  # bound, and not listening
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Unreachable, match=address) as raised:
            Shop(f"{address}/", "token").messages()
    lines = "".join(traceback.format_exception(raised.value)).splitlines()
    assert not any("During handling" in line or "direct cause" in line for line in lines)
    assert not any("urllib" in line for line in lines)


def test_client_has_a_call_for_each_operation():
    calls = inspect.getsource(Shop)
    for address in api.get_openapi_schema()["paths"]:
        asked = re.escape(address).replace(r"\{order_id\}", r"\{order\}")
        assert re.search(rf'"{asked}["?]', calls), f"no call of {address}"
