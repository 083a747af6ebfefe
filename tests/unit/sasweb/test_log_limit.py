"""Strangers cannot fill the log."""

import logging

import pytest

from sasweb import log_limit
from sasweb.settings import LOGGING


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(log_limit.time, "monotonic", lambda: now[0])
    return now


def line(name="django.security.csrf"):
    return logging.LogRecord(name, logging.WARNING, "", 0, "Forbidden: %s", ("/x",), None)


def test_refused_forms_are_logged_a_few_times_a_minute(clock):
    limited = log_limit.Limited()
    assert sum(limited.filter(line()) for _ in range(1000)) == log_limit.LINES
    clock[0] += log_limit.SECONDS
    first, second = line(), line("django.security.DisallowedHost")
    assert limited.filter(first)
    assert limited.filter(second)
    assert first.getMessage() == "Forbidden: /x (970 more were left out)"
    assert second.getMessage() == "Forbidden: /x"


def test_other_lines_are_not_limited(clock):
    limited = log_limit.Limited()
    assert all(limited.filter(line("orchestration.scheduler")) for _ in range(1000))


def test_console_is_limited():
    assert LOGGING["handlers"]["console"]["filters"] == ["limited"]
    assert LOGGING["filters"]["limited"]["()"] is log_limit.Limited
