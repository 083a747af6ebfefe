"""The rows by which processes report themselves."""

import signal
import sys

import pytest

from orchestration.cluster.heartbeat import Heartbeat
from orchestration.models import Worker

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ends_by_signal():
    """Let SIGUSR1 end the process, as SIGTERM does."""
    before = signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0))
    yield
    signal.signal(signal.SIGUSR1, before)


def test_process_that_ends_before_its_first_report_is_seen_leaves_no_row(ends_by_signal):
    arrived = []

    def report_while_a_signal_arrives(_queue):
        if not arrived:  # a busy machine may report once more before it ends
            arrived.append(True)
            signal.raise_signal(signal.SIGUSR1)  # the main thread handles it, while it waits

    heartbeat = Heartbeat("greeter", stepped_back=report_while_a_signal_arrives)
    with pytest.raises(SystemExit), heartbeat:
        pytest.fail("the signal came before the first report was seen")
    assert not heartbeat._thread.is_alive()
    assert not Worker.objects.exists()
