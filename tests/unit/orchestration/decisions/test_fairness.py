"""Turns: nothing idles, shares go by weight, none starves, and what was not used is not saved up."""

from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.decisions.fairness import (
    LONGEST_KEY,
    STRIDE,
    Arrival,
    Line,
    Position,
    check_key,
    give_turns,
)

KEYS = ("a", "b", "c")
WEIGHTS = st.fixed_dictionaries({key: st.sampled_from([0.5, 1.0, 2.0, 4.0]) for key in KEYS})
# what happens to a line: a number of a key come (new, or again), or are served
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(KEYS), st.integers(1, 30), st.booleans()),
        st.integers(1, 20),
    ),
    max_size=60,
)


@dataclass
class Queue:
    """A line served in the order of turns, as the claim does."""

    weights: dict[str, float]
    now: int = 10**18
    waiting: list[tuple[int, int, str]] = field(default_factory=list)
    served: list[str] = field(default_factory=list)
    arrived: int = 0
    waited: int = 0  # when it was last served

    @property
    def head(self) -> int | None:
        return min(self.waiting)[0] if self.waiting else None

    def come(self, key: str, count: int, *, again: bool = False) -> list[int]:
        self.now += 1
        line = Line("agent", 0, key)
        own = [turn for turn, _, whose in self.waiting if whose == key]
        standing = Position(
            head=self.head,
            last=max(own) if own else None,
            weight=self.weights[key],
            now=self.now,
        )
        turns = give_turns([Arrival(line, again)] * count, {line: standing})
        for turn in turns:
            self.arrived += 1
            self.waiting.append((turn, self.arrived, key))
        return turns

    def serve(self, count: int) -> list[str]:
        self.waited = len(self.waiting)
        first, self.waiting = sorted(self.waiting)[:count], sorted(self.waiting)[count:]
        self.served += [key for _, _, key in first]
        return [key for _, _, key in first]


@given(WEIGHTS, EVENTS)
def test_turns_are_behind_the_head_and_the_head_never_goes_back(weights, events):
    queue = Queue(weights)
    for event in events:
        before = queue.head
        if isinstance(event, int):
            assert len(queue.serve(event)) == min(event, queue.waited)  # nothing idles
        else:
            key, count, again = event
            turns = queue.come(key, count, again=again)
            assert turns == sorted(turns)
            assert before is None or turns[0] > before
        assert before is None or queue.head is None or queue.head >= before


@given(WEIGHTS, st.integers(1, 200))
def test_waiting_keys_share_by_weight(weights, rounds):
    queue = Queue(weights)
    for key in KEYS:
        queue.come(key, 1000)
    got = Counter(queue.serve(rounds))
    # start-time fair queueing: of any two, one is ahead by no more than one turn of each
    for first in KEYS:
        for other in KEYS:
            lag = got[first] / weights[first] - got[other] / weights[other]
            assert lag <= 1 / weights[first] + 1 / weights[other] + 1e-6


@given(st.integers(1, 5_000), st.integers(1, 20), st.integers(0, 3_000))
def test_small_key_is_not_delayed_by_a_large_one(bulk, few, served):
    queue = Queue(dict.fromkeys(KEYS, 1.0))
    queue.come("a", bulk)
    queue.serve(min(served, bulk))
    queue.come("b", few)
    left = [key for key in queue.serve(bulk + few) if key]
    last = max(index for index, key in enumerate(left) if key == "b")
    assert last < 2 * few + 1


@given(st.integers(1, 2_000), st.integers(1, 500))
def test_unused_share_is_not_saved_up(idle, many):
    queue = Queue(dict.fromkeys(KEYS, 1.0))
    queue.come("a", idle + many)
    queue.serve(idle)  # b had nothing to do all that time
    queue.come("b", many)
    got = Counter(queue.serve(many))
    assert abs(got["a"] - got["b"]) <= 2


@given(st.lists(st.sampled_from(KEYS[1:]), min_size=1, max_size=300))
def test_no_key_starves_under_a_steady_load(others):
    """Each time one is served, another comes again: also then the head goes on, and `a` is served."""
    queue = Queue(dict.fromkeys(KEYS, 1.0))
    for key in KEYS:
        queue.come(key, 3)
    for key in others:
        queue.serve(1)
        queue.come(key, 1, again=True)
    assert len(others) < 20 or "a" in queue.served


def test_key_with_twice_the_weight_gets_twice_as_much():
    queue = Queue({"a": 1.0, "b": 2.0, "c": 1.0})
    queue.come("a", 300)
    queue.come("b", 300)
    got = Counter(queue.serve(300))
    assert got["b"] == pytest.approx(2 * got["a"], abs=3)


def test_batches_of_one_key_continue_where_the_last_one_ended():
    queue = Queue(dict.fromkeys(KEYS, 1.0))
    turns = queue.come("a", 2) + queue.come("a", 2)
    assert [later - turns[0] for later in turns] == [0, STRIDE, 2 * STRIDE, 3 * STRIDE]


def test_retried_item_goes_before_the_rest_of_its_key():
    queue = Queue(dict.fromkeys(KEYS, 1.0))
    queue.come("a", 100)
    queue.come("a", 1, again=True)
    assert queue.waiting[-1][0] < sorted(queue.waiting)[3][0]


def test_empty_queue_starts_at_the_clock():
    line = Line("agent", 0, "a")
    standing = Position(head=None, last=None, weight=100.0, now=10**18)
    assert give_turns([Arrival(line)], {line: standing}) == [10**18 + STRIDE // 100]


@pytest.mark.parametrize("key", ["", "till-software", "k" * LONGEST_KEY, "Zürich/1"])
def test_valid_keys(key):
    assert check_key(key) == key


@pytest.mark.parametrize("key", ["k" * (LONGEST_KEY + 1), "two\nlines", "\0"])
def test_invalid_keys(key):
    with pytest.raises(ValueError, match="the fairness key"):
        check_key(key)


def test_of_begun_tasks_four_go_for_each_that_has_not():
    line = Line("greeter", 0, "bulk")
    fresh = Line("greeter", 0, "few")
    head = {"head": 1000 * STRIDE, "last": None, "weight": 1.0, "now": 0}
    standings = {line: Position(**head), fresh: Position(**head)}
    begun = [Arrival(line, again=True, begun=True)] * 40
    turns = give_turns([*begun, *[Arrival(fresh)] * 10], standings)
    order = sorted(zip(turns, ["begun"] * 40 + ["few"] * 10, strict=True))
    assert [who for _, who in order].count("few") == 10
    assert [who for _, who in order[:25]].count("few") == 5
    # a batch of retries has its own key's pace
    assert give_turns([Arrival(line, again=True)] * 2, standings) == [1001 * STRIDE, 1002 * STRIDE]
