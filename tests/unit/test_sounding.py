"""A page that looks at a Redis that hangs waits once, and briefly."""

import time

import pytest

from orchestration import queues, sounding


@pytest.mark.usefixtures("hanging_redis")
def test_of_many_looks_at_a_redis_that_hangs_only_the_first_waits():
    begun = time.monotonic()
    with pytest.raises(queues.Unreachable):
        sounding.depths(["scheduler"])
    assert 0.5 < time.monotonic() - begun < 1.9
    begun = time.monotonic()
    for _ in range(20):
        assert not sounding.answers()
    assert time.monotonic() - begun < 0.5


@pytest.mark.usefixtures("hanging_redis")
def test_it_looks_again_after_a_while(monkeypatch):
    monkeypatch.setattr("orchestration.conf.REDIS_SILENCE", 0.0)
    assert not sounding.answers()
    with pytest.raises(queues.Unreachable) as first:
        sounding.depths(["scheduler"])
    assert not isinstance(first.value, queues.Silent)


def test_a_redis_that_is_down_is_no_reason_to_look_away(settings, tmp_path):
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    for _ in range(2):
        with pytest.raises(queues.Unreachable) as told:
            sounding.depths(["scheduler"])
        assert not isinstance(told.value, queues.Silent)
