"""One client of Redis per process, however many threads ask for it at once."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from orchestration import conf
from orchestration.messaging import queues, redis_breaker

THREADS = 8


@pytest.fixture
def _hasty_threads():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_hasty_threads")
def test_concurrent_threads_share_one_client():
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(20):
            queues._connection.cache_clear()
            start = Barrier(THREADS)
            clients = [pool.submit(_ask, start) for _ in range(THREADS)]
            assert len({id(client.result()) for client in clients}) == 1


def _ask(start):
    start.wait()
    return queues.connection()


@pytest.fixture
def _fresh_client(hanging_redis, monkeypatch):
    monkeypatch.setattr(conf, "REDIS_TIMEOUT_S", 0.5)
    monkeypatch.setattr(queues, "_breaker", redis_breaker.RedisCircuitBreaker())
    queues._connection.cache_clear()
    yield
    queues._connection.cache_clear()


@pytest.mark.usefixtures("_fresh_client")
def test_only_the_first_ring_waits_while_redis_hangs(hanging_redis):
    assert not any(queues.try_to_ring(queues.SUBMISSION) for _ in range(50))
    assert hanging_redis() == 1


@pytest.mark.usefixtures("_fresh_client")
def test_one_ring_retries_for_all_after_a_while(hanging_redis, monkeypatch):
    assert not queues.try_to_ring(queues.SUBMISSION)
    before = hanging_redis()
    monkeypatch.setattr(queues._breaker, "_silent_until", time.monotonic())  # the while is over
    with ThreadPoolExecutor(THREADS) as pool:
        rings = [pool.submit(queues.try_to_ring, queues.SUBMISSION) for _ in range(THREADS)]
        assert not any(ring.result() for ring in rings)
    assert hanging_redis() == before + 1
