"""The verdict of `python -m bench.poison`."""

import pytest

from bench.poison import verdict as poison


def poisoned(**changes):
    fields = {
        "kind": "raises", "poison": 10, "good": 500, "rate": 32.0, "healthy": 40.0, "done": 500,
        "error_after": 30.4, "in_error": 10, "incidents": 1, "blamed": 0,
    }  # fmt: skip
    return poison.PoisonResult(**{**fields, **changes})


def test_poison_targets_exactly_met():
    assert poisoned().missed() == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rate": 31.0}, "raises (10): the good tasks run at 0.78 of their healthy rate"),
        ({"done": 499}, "499 of 500 good tasks are processed."),
        ({"error_after": None, "in_error": 3}, "3 of 10 poison steps are in error in time."),
    ],
)
def test_poison_missed_targets_are_sentences(changes, words):
    (sentence,) = poisoned(**changes).missed()
    assert words in sentence


def test_poison_last_line_shows_worst():
    assert poison.last_line([poisoned(), poisoned(rate=36.0, error_after=61.0)]) == (
        "poison min=0.80 error_within=61s"
    )
    assert poison.last_line([poisoned(error_after=None)]).endswith("error_within=never")


def test_poison_table_shows_good_tasks_in_error():
    text = poison.markdown([poisoned(), poisoned(blamed=2, done=498, error_after=None)])
    assert "| raises | 10 | 0.80 | 500/500 | 10/10 | 1 | 30 s |" in text
    assert "| 498/500, 2 in error | 10/10 | 1 | never |" in text
