"""When an instance of an agent steps back, and when it takes part again."""

import pytest

from orchestration.agents.outliers import (
    FEW,
    MEMORY,
    PAUSE,
    PAUSE_CAP,
    SLICE,
    Participation,
    Report,
    anyone_takes_part,
    is_outlier,
)

FAILS = {10: (0, 3), 11: (0, 3)}
WELL = {10: (3, 0), 11: (5, 0)}


@pytest.mark.parametrize(
    ("mine", "siblings", "outlier"),
    [
        (FAILS, [WELL], True),
        (FAILS, [], False),  # it is alone
        (FAILS, [{}], False),  # nothing is known of the other
        (FAILS, [FAILS], False),  # all fail alike
        (FAILS, [FAILS, WELL], True),  # one that is well is enough
        ({10: (0, 3), 11: (0, 1)}, [WELL], False),  # too few failures
        ({10: (0, 3), 11: (4, 2)}, [WELL], False),  # most go well
        ({9: (50, 0), 10: (0, 3), 11: (0, 3)}, [WELL], True),  # regardless of what went before
        ({10: (1, 3), 11: (1, 3)}, [WELL], True),  # most fail
        # what succeeded before the failures began says nothing: the service may have failed since
        (FAILS, [{9: (50, 0), 10: (50, 0)}], False),
        (FAILS, [{11: (4, 0)}], False),  # too few successes
        (FAILS, [{11: (5, 1)}], False),  # the other has trouble, too
        (FAILS, [{11: (20, 2)}], True),
        ({}, [WELL], False),
    ],
)
def test_instance_is_an_outlier_while_a_sibling_is_healthy(mine, siblings, outlier):
    assert is_outlier(mine, siblings) is outlier


def sick(at=100.0):
    """Return an instance that has stepped back at a time."""
    part = Participation()
    for _ in range(FEW):
        part.note(at - 2, at - 1, good=False)
    assert part.compare([well(at)], at)
    return part


def well(at, *, back=False):
    return Report(at=at, back=back, counts={int(at / SLICE) - 1: (FEW, 0)})


def test_outlier_probes_after_a_pause_one_request_at_a_time():
    part = sick()
    assert part.back_since == 100
    assert part.room(10, 0, 100 + PAUSE - 0.1) == 0
    assert part.room(10, 0, 100 + PAUSE) == 1
    assert part.room(9, 1, 100 + PAUSE) == 0  # the probe is under way


def test_outlier_returns_once_a_probe_succeeds():
    part = sick()
    part.note(99, 101, good=True)  # begun before it stepped back: no probe
    assert part.back_since is not None
    part.note(102, 102.1, good=True)
    assert part.back_since is None
    assert part.room(10, 0, 102.1) == 10
    assert part.report(102.1).counts == {}


def test_pause_doubles_with_each_failed_probe_up_to_its_cap():
    part, now, pauses = sick(), 100.0, []
    for _ in range(8):
        due = next(now + tick / 2 for tick in range(1000) if part.room(10, 0, now + tick / 2))
        pauses.append(due - now)
        now = due
        part.note(now, now, good=False)
    assert pauses == [PAUSE, 4, 8, 16, 32, PAUSE_CAP, PAUSE_CAP, PAUSE_CAP]


@pytest.mark.parametrize(("later", "pause"), [(3, 2 * PAUSE), (3 * MEMORY, PAUSE)])
def test_pause_grows_for_an_instance_that_keeps_failing(later, pause):
    part = sick()
    part.take_part(102)
    now = 102.0 + later
    for _ in range(FEW):
        part.note(now - 2, now - 1, good=False)
    assert part.compare([well(now)], now)
    assert part.room(10, 0, now + pause - 0.1) == 0
    assert part.room(10, 0, now + pause) == 1


def test_ejected_and_silent_siblings_are_not_compared_with():
    part = Participation()
    for _ in range(FEW):
        part.note(98, 99, good=False)
    assert not part.compare([well(100, back=True)], 100)
    assert not part.compare([Report(at=70, back=False, counts=well(100).counts)], 100)
    assert not part.compare([well(3700)], 100)  # the clock was set back since
    assert part.compare([well(100)], 100)
    assert not anyone_takes_part([well(3700)], 100, within=10)
    assert not anyone_takes_part([well(100, back=True), well(80)], 100, within=10)
    assert anyone_takes_part([well(95)], 100, within=10)


def test_old_outcomes_are_forgotten():
    part = Participation()
    part.note(98, 99, good=True)
    assert len(part.report(100).counts) == 1
    assert part.report(100 + MEMORY).counts == {}


def test_reports_are_json_and_anything_else_is_ignored():
    sent = Report(at=5.5, back=True, counts={3: (1, 2)})
    assert Report.parse(sent.dump()) == sent
    for raw in (
        b"",
        b"{}",
        b"[1]",
        b'[1,2,[["a",1,2]]]',
        b"[1,2,3]",
        b"\xff",
        b"[null,1,[]]",
        b"[1,false,[[Infinity,1,1]]]",
        b"[" * 100_000,
    ):
        assert Report.parse(raw) is None
