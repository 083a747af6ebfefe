"""One client of Redis per process, however many threads ask for it at once."""

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from orchestration import queues

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
