"""The counts of the last minutes."""

import time

import pytest

from sandbox.traffic import BARS, Bar, Traffic


def test_traffic_drops_old_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    traffic = Traffic()
    traffic.current().requests += 2
    traffic.current().hit += 1
    now += 10
    traffic.current().requests += 1
    traffic.current().effects += 1
    assert traffic.bars()[-2:] == [Bar(2, 0, 1), Bar(1, 1, 0)]
    assert len(traffic.bars()) == BARS
    now += 290
    assert traffic.total() == Bar(1, 1, 0)
    now += 10
    assert traffic.total() == Bar()
