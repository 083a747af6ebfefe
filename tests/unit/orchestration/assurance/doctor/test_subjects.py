"""Subjects: bounded in time, and one that fails keeps no other from its findings."""

import threading

import pytest
from django.core.checks import ERROR, INFO, Error, Info

from orchestration.assurance.doctor import subjects
from orchestration.assurance.doctor.subjects import Moot, Subject, Unanswered, examine


@pytest.fixture(autouse=True)
def _own_subjects(monkeypatch):
    monkeypatch.setattr(subjects, "subjects", [])


def raising(error):
    def gather():
        raise error

    return gather


def test_examine_names_each_finding_and_puts_the_worst_first():
    lamp = Subject("lamp", lambda: 3, remedy="")

    @lamp.check
    def bright(volts):
        yield Info(f"it has {volts}")

    @lamp.check
    def switched(volts):
        if volts < 5:
            yield Error("it is off", hint="switch it on")

    messages = [(message.id, message.level, message.msg) for message in examine(5)]
    assert messages == [("lamp.switched", ERROR, "it is off"), ("lamp.bright", INFO, "it has 3")]


def test_examine_is_bounded_when_a_subject_hangs():
    ended = threading.Event()
    Subject("hangs", ended.wait, remedy="wake it", kind=Info)
    Subject("away", raising(Unanswered("it is away")), remedy="start it")
    by_id = {message.id: (message.level, message.hint) for message in examine(0.05)}
    ended.set()
    assert by_id == {
        "hangs.unreachable": (INFO, "wake it"),
        "away.unreachable": (ERROR, "start it"),
    }


def test_examine_reports_a_check_that_fails():
    Subject("broken", raising(KeyError("x")), remedy="")
    Subject("moot", raising(Moot()), remedy="")
    assert [message.id for message in examine(5)] == ["broken.failed"]
