"""Text and JSON from outside."""

import json
import math
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.payloads.text import READER, as_text, printable

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
)
CIRCULAR: list[object] = []
CIRCULAR.append(CIRCULAR)


@pytest.mark.parametrize(
    ("text", "shown"),
    [("Genève", "Genève"), ("a\x00b\x1b[2J", "a b [2J"), ("a\nb", "a b"), ("\ud800", "?")],
)
def test_printable(text, shown):
    assert printable(text) == shown


def test_printable_with_line_breaks_to_keep():
    assert printable("a\nb\tc", keep="\n") == "a\nb c"


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1e999"])
def test_json_with_what_json_has_not(text):
    with pytest.raises(ValueError, match=r"JSON|too large"):
        READER.decode(f'{{"a": {text}}}')


@given(VALUES)
def test_value_as_the_standard_library_writes_it(value):
    assert json.loads(as_text(value)) == json.loads(json.dumps(value))


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, datetime.now(UTC), b"raw", {1, 2}, Decimal("1.5"), object(), CIRCULAR],
    ids=lambda value: type(value).__name__,
)
def test_value_that_json_has_no_form_for(value):
    with pytest.raises((TypeError, ValueError)):
        as_text({"inner": [value]})
