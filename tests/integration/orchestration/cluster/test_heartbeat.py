"""The rows by which processes report themselves."""

import signal
import sys

import pytest

from drill.waiting import wait_for
from orchestration.cluster.heartbeat import WEB, Heartbeat
from orchestration.models import Worker

pytestmark = pytest.mark.django_db(transaction=True)


def test_process_that_does_not_wait_is_listed_and_leaves_no_row():
    heartbeat = Heartbeat(WEB)
    heartbeat.begin()
    try:
        wait_for(Worker.objects.filter(queue=WEB).exists, "it is reported", 10)
    finally:
        heartbeat.end()
    assert not Worker.objects.exists()


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


def test_process_that_ends_while_its_heartbeat_starts_leaves_no_row(ends_by_signal, monkeypatch):
    heartbeat = Heartbeat("greeter")
    start = heartbeat._thread.start

    def start_and_be_ended():
        start()
        signal.raise_signal(signal.SIGUSR1)

    monkeypatch.setattr(heartbeat._thread, "start", start_and_be_ended)
    with pytest.raises(SystemExit), heartbeat:
        pytest.fail("the signal came before the heartbeat had started")
    assert not heartbeat._thread.is_alive()
    assert not Worker.objects.exists()


def test_heartbeat_that_a_signal_kept_from_its_start_ends(ends_by_signal, monkeypatch):
    heartbeat = Heartbeat("greeter")
    monkeypatch.setattr(heartbeat._thread, "start", lambda: signal.raise_signal(signal.SIGUSR1))
    with pytest.raises(SystemExit), heartbeat:
        pytest.fail("the heartbeat was not started")
    assert not Worker.objects.exists()
