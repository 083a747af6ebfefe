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
    def bright(found):
        yield Info(f"it has {found}")

    @lamp.check
    def switched(found):
        if found < 5:
            yield Error("it is off", hint="switch it on")

    found = [(one.id, one.level, one.msg) for one in examine(5)]
    assert found == [("lamp.switched", ERROR, "it is off"), ("lamp.bright", INFO, "it has 3")]


def test_examine_is_bounded_when_a_subject_hangs():
    ended = threading.Event()
    Subject("hangs", ended.wait, remedy="wake it", kind=Info)
    Subject("away", raising(Unanswered("it is away")), remedy="start it")
    found = {one.id: (one.level, one.hint) for one in examine(0.05)}
    ended.set()
    assert found == {
        "hangs.unreachable": (INFO, "wake it"),
        "away.unreachable": (ERROR, "start it"),
    }


def test_examine_reports_a_check_that_fails():
    Subject("broken", raising(KeyError("x")), remedy="")
    Subject("moot", raising(Moot()), remedy="")
    assert [one.id for one in examine(5)] == ["broken.failed"]
