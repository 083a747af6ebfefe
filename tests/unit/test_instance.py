"""The id of an instance tells it from all others, and fits into its column."""

from orchestration import instance


def test_two_long_labels_that_begin_alike_stay_apart():
    one, other = (instance.name("status." + "x" * 50 + end) for end in "ab")
    assert one != other
    assert len(one) <= 80
    assert one == instance.name("status." + "x" * 50 + "a")


def test_a_label_that_fits_is_whole():
    assert instance.name("notification").startswith("notification@")
