"""How deep a payload may be."""

import pytest

from orchestration.payloads.limits import DEEPEST, is_deep


def nested(levels, wrap):
    value = 1
    for _ in range(levels):
        value = wrap(value)
    return value


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"a": value, "b": 2}])
def test_is_deep_by_levels(wrap):
    assert [is_deep(nested(levels, wrap)) for levels in (0, 1, DEEPEST, DEEPEST + 1)] == [
        False, False, False, True,
    ]  # fmt: skip
    assert [is_deep(nested(levels, wrap), 3) for levels in (3, 4)] == [False, True]
