"""Text and JSON from outside."""

import pytest

from orchestration.payloads.text import READER, printable


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
