"""The example client, without a shop."""

import socket
import traceback

import pytest

from docs.examples import shop_client
from docs.examples.shop_client import Shop, Unreachable


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
