"""What those see of a task who may not see personal data."""

import pytest

from orchestration import registry
from orchestration.api import Workflow, field
from orchestration.redaction import HIDDEN, Veil

DATA = {
    "email": "Ada@Example.org",
    "home": {"street": "12 Analytical Way", "country": "IE", "floor": 3},
    "lines": [{"sku": "tea-1"}],
    "total": 1200,
}


@pytest.fixture
def veil(monkeypatch):
    declared = Workflow(
        name="post", steps=[], contact=field("email"), personal=[field("home"), field("absent")]
    )
    monkeypatch.setitem(registry.workflows, "post", declared)
    return Veil("post", DATA)


def test_declared_fields_are_hidden_whole(veil):
    assert veil.input == {
        "email": HIDDEN,
        "home": {"street": HIDDEN, "country": HIDDEN, "floor": HIDDEN},
        "lines": [{"sku": "tea-1"}],
        "total": 1200,
    }


@pytest.mark.parametrize(
    ("said", "shown"),
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
def test_their_words_are_hidden_wherever_they_turn_up(veil, said, shown):
    assert veil(said) == shown


def test_of_a_workflow_that_is_gone_all_input_is_hidden():
    veil = Veil("gone", DATA)
    assert veil.input["lines"] == [{"sku": HIDDEN}]
    assert veil("it was tea-1") == f"it was {HIDDEN}"
