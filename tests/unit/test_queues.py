"""One client of Redis per process, however many threads ask for it at once."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from orchestration import conf, queues

THREADS = 8


@pytest.fixture
def _hasty_threads():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_hasty_threads")
def test_threads_that_ask_at_once_get_the_same_client():
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
def _fresh_client(hanging_redis):
    queues._connection.cache_clear()
    yield
    queues._connection.cache_clear()


@pytest.mark.usefixtures("_fresh_client")
def test_of_many_who_ring_while_redis_hangs_only_the_first_waits(monkeypatch):
    monkeypatch.setattr(conf, "REDIS_TIMEOUT", 0.5)
    monkeypatch.setattr(queues, "_patience", queues.Patience())
    begun = time.monotonic()
    assert not queues.try_to_ring(queues.SUBMISSION)
    assert time.monotonic() - begun > 0.4
    begun = time.monotonic()
    assert not any(queues.try_to_ring(queues.SUBMISSION) for _ in range(50))
    assert time.monotonic() - begun < 0.4


@pytest.mark.usefixtures("_fresh_client")
def test_after_a_while_one_asks_for_all(monkeypatch):
    monkeypatch.setattr(conf, "REDIS_TIMEOUT", 0.5)
    monkeypatch.setattr(conf, "REDIS_SILENCE", 0.5)
    monkeypatch.setattr(queues, "_patience", queues.Patience())
    assert not queues.try_to_ring(queues.SUBMISSION)
    time.sleep(0.6)
    with ThreadPoolExecutor(THREADS) as pool:
        begun = time.monotonic()
        rings = [pool.submit(_timed_ring) for _ in range(THREADS)]
        took = sorted(ring.result() for ring in rings)
    assert time.monotonic() - begun < 1.5
    assert took[-2] < 0.4
    assert took[-1] > 0.4


def _timed_ring():
    begun = time.monotonic()
    assert not queues.try_to_ring(queues.SUBMISSION)
    return time.monotonic() - begun
