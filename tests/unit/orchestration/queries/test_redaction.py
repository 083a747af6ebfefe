"""What those see of a task who may not see personal data."""

import pytest

from orchestration import registry
from orchestration.api import Workflow, field
from orchestration.queries.redaction import HIDDEN, Redactor

DATA = {
    "email": "Ada@Example.org",
    "home": {"street": "12 Analytical Way", "country": "IE", "floor": 3},
    "lines": [{"sku": "tea-1"}],
    "total": 1200,
}


@pytest.fixture
def redactor(monkeypatch):
    declared = Workflow(
        name="post", steps=[], contact=field("email"), personal=[field("home"), field("absent")]
    )
    monkeypatch.setitem(registry.workflows, "post", declared)
    return Redactor("post", DATA)


def test_declared_fields_are_redacted_whole(redactor):
    assert redactor.input == {
        "email": HIDDEN,
        "home": {"street": HIDDEN, "country": HIDDEN, "floor": HIDDEN},
        "lines": [{"sku": "tea-1"}],
        "total": 1200,
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no mailbox ada@example.org here", f"no mailbox {HIDDEN} here"),
        ("12 ANALYTICAL WAY", HIDDEN),
        ("IE", HIDDEN),
        ("a tie, then", "a tie, then"),  # a short word inside of others says nothing
        ("timeout after 3 s", "timeout after 3 s"),
        ("", ""),
        ({"to": "ada@example.org", "tries": 2}, {"to": HIDDEN, "tries": 2}),
        (
            ["x", {"at": "12 Analytical Way, ground floor"}],
            ["x", {"at": f"{HIDDEN}, ground floor"}],
        ),
        (None, None),
    ],
)
def test_redacted_words_are_hidden_wherever_they_occur(redactor, text, shown):
    assert redactor(text) == shown


def test_input_of_an_unknown_workflow_is_redacted_whole():
    redactor = Redactor("gone", DATA)
    assert redactor.input["lines"] == [{"sku": HIDDEN}]
    assert redactor("it was tea-1") == f"it was {HIDDEN}"
