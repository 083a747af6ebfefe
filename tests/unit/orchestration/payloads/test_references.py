"""The references of children say who is above them."""

import pytest

from orchestration.payloads import references
from orchestration.tracing import ids


def test_reference_of_a_child_goes_on_from_that_of_its_parent():
    first = references.of_child("42", "parcels", 0, 0)
    again = references.of_child(first, "pick-1", 11, 2)
    assert (first, again) == ("42/parcels/0", "42/parcels/0/pick-1/11.3")
    assert references.above(again) == ["42", "42/parcels/0"]
    assert references.above(first) == ["42"]


@pytest.mark.parametrize(
    "reference", ["42", "", "/", "a/b", "a/b/c", "/a/1", "a//1", "a/b/1x", "a/b/1."]
)
def test_other_references_have_none_above(reference):
    assert references.above(reference) == []


def test_children_share_the_trace_of_the_task_at_the_top():
    of_task = ids.trace_of("42")
    assert ids.trace_of("42/parcels/0") == ids.trace_of("42/parcels/0/pick/11.3") == of_task
    assert ids.trace_of("43/parcels/0") != of_task
    assert ids.trace_of("42/parcels") != of_task
