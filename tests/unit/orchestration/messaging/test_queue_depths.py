"""A page that looks at a Redis that hangs waits once, and briefly."""

import pytest

from orchestration.messaging import queue_depths, redis_breaker


def test_only_the_first_reader_waits_for_a_redis_that_hangs(hanging_redis):
    with pytest.raises(redis_breaker.Unreachable):
        queue_depths.depths(["scheduler"])
    assert not any(queue_depths.answers() for _ in range(20))
    assert hanging_redis() == 1


@pytest.mark.usefixtures("hanging_redis")
def test_redis_is_asked_again_after_a_while(monkeypatch):
    monkeypatch.setattr("orchestration.conf.REDIS_BACKOFF_S", 0.0)
    assert not queue_depths.answers()
    with pytest.raises(redis_breaker.Unreachable) as first:
        queue_depths.depths(["scheduler"])
    assert not isinstance(first.value, redis_breaker.Silent)


def test_redis_that_is_down_is_reported_on_each_look(settings, tmp_path):
    settings.REDIS_URL = f"unix://{tmp_path}/absent.sock"
    for _ in range(2):
        with pytest.raises(redis_breaker.Unreachable) as raised:
            queue_depths.depths(["scheduler"])
        assert not isinstance(raised.value, redis_breaker.Silent)
