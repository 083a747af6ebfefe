"""The grammar of searches: what reads as what, what prints as what, and what is refused where."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.console.queries.search_grammar import (
    DEEPEST,
    AllOf,
    AnyOf,
    Not,
    Term,
    Unreadable,
    all_of,
    any_of,
    parse,
    wording,
)


def texts(pieces, most):
    return st.lists(st.sampled_from(pieces), max_size=most).map("".join)


values = texts([*"abAZ09-:_@.*<>=()'ß日 \t", "AND", "OR", "NOT", "https:"], 6)
words = st.builds(Term, st.just(""), values.filter(bool))
qualifiers = st.builds(Term, st.sampled_from(["state", "step", "attempts", "unknown"]), values)
trees = st.recursive(
    words | qualifiers,
    lambda part: st.one_of(
        st.builds(Not, part),
        st.lists(part, min_size=1, max_size=4).map(all_of),
        st.lists(part, min_size=1, max_size=4).map(any_of),
    ),
    max_leaves=12,
)


def term(text):
    name, _, value = text.rpartition(":")
    return Term(name, value)


A, B, C = term("state:a"), term("b"), term("step:c")


@given(trees)
def test_printed_tree_reads_back_as_the_same_tree(tree):
    assert parse(wording(tree)) == tree


@given(texts([*'ab:-()" ', " OR ", " AND ", "NOT ", "state:"], 30))
def test_any_text_is_read_or_refused_with_a_reason(text):
    try:
        tree = parse(text)
    except Unreadable as problem:
        assert str(problem)  # noqa: PT017 - either way is right
    else:
        assert parse(wording(tree)) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("", None),
        ("state:a b", AllOf((A, B))),
        ("state:a AND b", AllOf((A, B))),
        ("state:a and", AllOf((A, term("and")))),
        ("state:a OR b step:c", AnyOf((A, AllOf((B, C))))),
        ("(state:a OR b) step:c", AllOf((AnyOf((A, B)), C))),
        ("(((b)))", B),
        ("-b", Not(B)),
        ("NOT b", Not(B)),
        ("- b", AllOf((term("-"), B))),
        ("--b", Not(Not(B))),
        ("-(state:a b)", Not(AllOf((A, B)))),
        ("NOT state:a OR b", AnyOf((Not(A), B))),
        ("step:(a OR -b)", AnyOf((term("step:a"), Not(term("step:b"))))),
        ("b b b", B),
        ('"-b"', term("-b")),
        ('"OR"', term("OR")),
        ("STATE:a", A),
        ("state:", term("state:")),
        ('state:"x y"', term("state:x y")),
        ("value:>=100", Term("value", ">=100")),
        ("A-1:3", Term("", "A-1:3")),
        ("https://shop.example/x", Term("", "https://shop.example/x")),
    ],
)
def test_text_is_read_as_a_tree(text, tree):
    assert parse(text) == tree


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("(state:a", "“(” (character 1) is not closed"),
        ("state:a)", "“)” (character 8) has no “(”"),
        ("()", "“(” (character 1) has nothing in it"),
        ("step:()", "“(” (character 6) has nothing in it"),
        ("b OR", "“OR” (character 3) has nothing after it"),
        ("OR b", "“OR” (character 1) has nothing before it"),
        ("b OR OR c", "“OR” (character 3) has nothing after it"),
        ("b AND", "“AND” (character 3) has nothing after it"),
        ("AND b", "“AND” (character 1) has nothing before it"),
        ("b NOT", "“NOT” (character 3) has nothing after it"),
        ("-(", "“(” (character 2) is not closed"),
        ('b "c', "quotation mark is not closed (character 3)"),
        ("x" * 501, "at most 500 characters"),
        ("(" * (DEEPEST + 2) + "b", f"at most {DEEPEST} groups"),
        ("-" * (DEEPEST + 2) + "b", f"at most {DEEPEST} groups"),
    ],
)
def test_broken_text_is_refused_with_the_place(text, where):
    with pytest.raises(Unreadable) as refused:
        parse(text)
    assert where in str(refused.value)
