"""What those see of a task who may not see personal data."""

import re
from base64 import b64encode, urlsafe_b64encode
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestration import registry
from orchestration.api import Workflow, field
from orchestration.people.redaction import HIDDEN, LETTER, Redactor
from orchestration.people.word_finder import Finder

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
        ("no box in ANALYTICAL way", f"no box in {HIDDEN} {HIDDEN}"),
        ("to=ada%40example.org&x=1", f"to={HIDDEN}&x=1"),
        ("?at=12+Analytical+Way", f"?at={HIDDEN}"),
        ("ada knows", f"{HIDDEN} knows"),
        ("Canada, adamant", "Canada, adamant"),
        ("example.org answered 502", "example.org answered 502"),
    ],
)
def test_redacted_words_are_hidden_wherever_they_occur(redactor, text, shown):
    assert redactor(text) == shown


def test_words_of_a_letter_are_not_hidden_one_by_one(monkeypatch):
    declared = Workflow(name="post", steps=[], personal=[field("letter"), field("name")])
    monkeypatch.setitem(registry.workflows, "post", declared)
    letter = "Dear Ms Byron, your order is on its way."
    redactor = Redactor("post", {"letter": letter, "name": "Ada Byron"})
    assert redactor(f"mail refused: {letter}") == f"mail refused: {HIDDEN}"
    assert redactor("the order of BYRON is on its way") == f"the order of {HIDDEN} is on its way"


def test_letter_costs_little_until_a_text_may_have_it(monkeypatch):
    declared = Workflow(name="post", steps=[], personal=[field("letter"), field("name")])
    monkeypatch.setitem(registry.workflows, "post", declared)

    def cost(letter):
        names = [f"Ada Byron{letter[:1]}{number}" for number in range(20)]
        began = process_time()
        for name in names:
            redactor = Redactor("post", {"letter": letter and f"{letter}{name}", "name": name})
            assert redactor(f"refused by {name}") == f"refused by {HIDDEN}"
        return process_time() - began

    assert cost("Your order is on its way. " * 1000) < 30 * cost("")


@pytest.mark.parametrize("length", [150, LETTER - 1, LETTER, LETTER + 1, 1000])
def test_text_of_any_length_is_hidden_in_a_longer_one(length):
    word = "x" * length
    assert Redactor("gone", [word])(f"it was {word}.") == f"it was {HIDDEN}."


def test_cost_goes_with_the_text_and_not_with_the_number_of_words():
    text = "the order of custom goods, nowhere near; " * 2000

    def cost(words):
        redactor = Redactor("gone", [f"customer-{number:05}" for number in range(words)])
        assert redactor(f"{text}customer-00003") == f"{text}{HIDDEN}"  # what finds words is made
        began = process_time()
        redactor(text)
        return process_time() - began

    assert min(cost(4000) for _ in range(3)) < 10 * min(cost(10) for _ in range(3))


@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode])
@pytest.mark.parametrize("before", ["", "x", "xy", "xyz"])
def test_word_in_base64_is_hidden(redactor, encode, before):
    for word in ("Ada@Example.org", "ada@example.org"):
        encoded = encode(f"{before}{word} and more".encode()).decode()
        assert HIDDEN in redactor(f"it got {encoded}")
        shown = redactor(f"it got {encoded}").removeprefix("it got ").split(HIDDEN)
        assert all(len(part) <= len(encode(before.encode())) + 20 for part in shown)
        assert encoded not in redactor(f"it got {encoded}")


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("straße", "STRASSE 1"),
        ("İstanbul", "istanbul"),
        ("istanbul", "\u0130STANBUL"),
        ("Kelvin", "\u212aELVIN"),
        ("masses", "ma\u017f\u017fes"),
        ("σοφος", "ΣΟΦΟΣ, σοφος, σοφο\u03c2"),
        ("ÅNGSTRÖM", "ångström"),
    ],
)
def test_words_are_found_as_a_regular_expression_without_case_finds_them(word, text):
    expected = re.sub(re.escape(word), HIDDEN, text, flags=re.IGNORECASE)
    assert Finder([word], []).replace(text, HIDDEN) == expected


@example(words=[], parts=["aaa", "aaabb"], text="aaa")  # of two lengths, at the end of a text
@given(
    words=st.lists(st.text("abA-\u017f", min_size=3, max_size=8), max_size=5),
    parts=st.lists(st.text("abA", min_size=3, max_size=5), max_size=5),
    text=st.text("abA- \u017f", max_size=60),
)
def test_finder_finds_what_a_regular_expression_of_all_words_does(words, parts, text):
    def longest_first(chosen):
        return "|".join(re.escape(word) for word in sorted(chosen, key=len, reverse=True))

    either = [longest_first(words)] if words else []
    either += [rf"(?<!\w)(?:{longest_first(parts)})(?!\w)"] if parts else []
    expected = re.sub("|".join(either), "#", text, flags=re.IGNORECASE) if either else text
    assert Finder(words, parts).replace(text, "#") == expected


def test_input_of_an_unknown_workflow_is_redacted_whole():
    redactor = Redactor("gone", DATA)
    assert redactor.input["lines"] == [{"sku": HIDDEN}]
    assert redactor("it was tea-1") == f"it was {HIDDEN}"
