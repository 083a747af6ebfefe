"""The id of an instance is unique, and fits into its column."""

from orchestration.cluster import instance


def test_long_labels_with_a_common_prefix_stay_distinct():
    first, other = (instance.name("status." + "x" * 50 + end) for end in "ab")
    assert first != other
    assert len(first) <= 80
    assert first == instance.name("status." + "x" * 50 + "a")


def test_label_that_fits_is_kept_whole():
    assert instance.name("notification").startswith("notification@")
