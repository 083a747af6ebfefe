"""What searches find in Postgres is what the same trees mean for each task in plain Python."""

import random
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection
from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

from orchestration.console.queries import task_filters, task_list
from orchestration.console.queries.search_grammar import (
    AllOf,
    AnyOf,
    Not,
    Term,
    all_of,
    any_of,
    wording,
)
from orchestration.console.queries.search_query import MOST, read
from orchestration.console.queries.task_columns import COLUMNS, Order
from orchestration.console.queries.task_list import Place
from orchestration.models import Step, Task
from orchestration.states import LIVE_TASK_STATES
from tests.support.audit_rows import no_route
from tests.support.engine import without_triggers

pytestmark = pytest.mark.django_db

COUNT = 48
PAGE = 10
AT_WORK = ("processing", "pending")


def is_called(task, _step, word):
    return task.reference.startswith(word) or task.contact == word


def compares(number, comparison):
    sign, bound = (
        (comparison[0], int(comparison[1:])) if comparison[0] in "<>" else ("=", int(comparison))
    )
    return {"<": number < bound, ">": number > bound, "=": number == bound}[sign]


def is_in_trouble(task, _step, trouble):
    pending = [step for step in task.now if step.process_state == "pending"]
    return {
        "overdue": task.overdue and task.state in LIVE_TASK_STATES,
        "retrying": any(step.run_after and step.attempt for step in pending),
    }[trouble]


# the meaning of a term for a task and one of the steps it stands at, or none
MEANINGS = {
    "": is_called,
    # together with what is asked of a step, it is a step in error
    "state": lambda t, s, value: t.state == value and not (
        s and value == "error" and s.process_state != "error"
    ),
    "workflow": lambda t, s, value: t.workflow == value,
    "is": is_in_trouble,
    "reference": lambda t, s, value: t.reference.startswith(value),
    "about": lambda t, s, value: t.about_reference.startswith(value),
    "contact": lambda t, s, value: t.contact == value,
    "value": lambda t, s, value: compares(t.value, value.replace("1", "100", 1)) and (
        t.value > 0 or not value.startswith("<")
    ),
    "step": lambda t, s, value: s and s.name == value,
    "agent": lambda t, s, value: s and s.agent == value,
    "error": lambda t, s, value: s and s.error_code.startswith(value),
    "attempts": lambda t, s, value: s and compares(s.attempt, value),
}  # fmt: skip


def finds(tree, task):
    """Return whether a tree finds a task: by one of its steps, the same for all that is not negated."""
    return any(holds(tree, task, step) for step in [None, *task.now])


def holds(tree, task, step):
    match tree:
        case Term(name, value):
            return bool(MEANINGS[name](task, step, value))
        case Not(part):
            return not finds(part, task)
        case AllOf(parts):
            return all(holds(part, task, step) for part in parts)
        case AnyOf(parts):
            return any(holds(part, task, step) for part in parts)


@pytest.fixture
def tasks():
    """A few dozen tasks in any state, each with the steps that it stands at."""
    chance = random.Random(7)  # noqa: S311 - the same tasks each time
    made, steps, alert = [], [], no_route()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    for number in range(COUNT):
        state = chance.choice(
            ["pending", "processing", "error", "error", "undoing", "processed", "undone"]
        )
        at = now - timedelta(minutes=number)
        task = Task(
            id=UUID(int=(int(at.timestamp() * 1000) << 80) + number + 1),
            workflow=chance.choice(["greet", "process_order"]),
            reference=chance.choice(["a", "b"]) + chance.choice(["x", "y"]) + f"-{number}",
            state=state, data={"name": "A"}, contact=chance.choice(["", "ada@x", "bob@x"]),
            about_reference=["", "", "ax-1", "by-2"][number % 4], about_workflow="greet",
            value=chance.choice([0, 0, 100, 200, 300]), currency="EUR",
            overdue=chance.random() < 0.3, created_at=at,
            complete_by=now + timedelta(seconds=chance.randrange(-5, 5)),
            ended_at=at if state in ("processed", "undone") else None,
        )  # fmt: skip
        states = {"error": ["error", *chance.choices(["error", *AT_WORK], k=2)],
                  "processed": [], "undone": []}  # fmt: skip
        task.now = []
        for name, at_state in zip(
            ("hello", "again", "capture_payment"),
            states.get(state, chance.choices(AT_WORK, k=chance.randrange(1, 3))),
            strict=False,
        ):
            pending = at_state == "pending"
            retry = now + timedelta(hours=1) if pending and chance.random() < 0.5 else None
            task.now.append(Step(
                task=task, name=name, agent=chance.choice(["greeter", "payment"]), action="a",
                request={}, process_state=at_state, attempt=chance.randrange(4),
                pending_since=now if pending else None, run_after=retry,
                complete_by=now if at_state == "processing" else None,
                alert=alert if at_state == "error" else None,
                error_code=chance.choice(["", "timeout", "timed", "refused"]),
            ))  # fmt: skip
        made.append(task)
        steps += task.now
    with without_triggers():
        Task.objects.bulk_create(made)
        Step.objects.bulk_create(steps)
    return made


def term_of(name, values):
    return st.builds(Term, st.just(name), st.sampled_from(values))


terms = st.one_of(
    term_of("", ["a", "ax", "b", "ada@x"]),
    term_of("state", ["error", "processing", "pending", "processed", "undoing"]),
    term_of("workflow", ["greet", "process_order"]),
    term_of("is", ["overdue", "retrying"]),
    term_of("reference", ["a", "by"]),
    term_of("about", ["a", "by"]),
    term_of("contact", ["ada@x", "bob@x"]),
    term_of("value", ["<1", ">1", "1", "0"]),
    term_of("step", ["hello", "again", "capture_payment"]),
    term_of("agent", ["greeter", "payment"]),
    term_of("error", ["time", "timeout", "refused"]),
    term_of("attempts", [">1", "<1", "2"]),
)
trees = st.recursive(
    terms,
    lambda part: st.one_of(
        st.builds(Not, part),
        st.lists(part, min_size=2, max_size=3).map(all_of),
        st.lists(part, min_size=2, max_size=3).map(any_of),
    ),
    max_leaves=7,
)


def understood(tree):
    """Return a tree as a search, or None where it is refused for a reason of its own."""
    search = read({"q": wording(tree), "with": "background"}, personal=True)
    for problem in search.problems:
        assert "is given twice" in problem or f"more than {MOST}" in problem, problem
    return None if search.problems else search


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@example(tree=Not(Not(AllOf((Term("reference", "a"), Term("reference", "by"))))))
@given(tree=trees)
def test_search_finds_what_its_tree_means(tasks, tree):
    if (search := understood(tree)) is None:
        return
    note(wording(tree))
    query = search.query
    expected = sorted(task.id for task in tasks if finds(tree, task))
    assert sorted(set(task_filters.ids(query))) == expected
    assert task_filters.page(query, 100) == expected[::-1]
    assert task_filters.page(query, 100, oldest_first=True) == expected
    assert task_filters.count(query) == len(expected)
    assert task_filters.belonging(query, [task.id for task in tasks]) == set(expected)


def listed(query, order, place=None):
    return task_list.tasks(query, place, order=order, personal=True)


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize(
    "query", ["", "-state:processed", "state:error OR is:retrying OR agent:greeter"]
)
def test_pages_in_any_order_have_every_task_once(tasks, monkeypatch, query, few):
    monkeypatch.setattr("orchestration.console.queries.task_list.PAGE", PAGE)
    if not few:
        monkeypatch.setattr("orchestration.console.queries.task_order.MOST", 3)
    search = read({"q": query, "with": "background"}, personal=True).query
    expected = set(task_filters.ids(search))
    assert len(expected) > 20
    for column in COLUMNS:
        if not (few or COLUMNS[column].walk):
            continue
        for descending in (True, False):
            order = Order(column=column, descending=descending)
            page = first = listed(search, order)
            pages = [page]
            while page.older:
                page = listed(search, order, Place(older=page.older))
                pages.append(page)
            ids = [row.task.id for shown in pages for row in shown.rows]
            assert (len(ids), set(ids)) == (len(expected), expected), order
            assert first.newer is None
            back = [page := listed(search, order, Place(last=True))]
            while page.newer:
                page = listed(search, order, Place(newer=page.newer))
                back.insert(0, page)
            assert [row.task.id for row in back[0].rows] == ids[:PAGE], order
            assert [row.task.id for row in back[-1].rows] == ids[-PAGE:], order
            _in_order([row.task for shown in pages for row in shown.rows], order)


def _in_order(tasks, order):
    """Check the order of what can be seen of tasks alone: those without a value come last."""
    keys = {
        "value": lambda task: task.value or None,
        "due": lambda task: None if task.ended_at else task.complete_by,
        "ended": lambda task: task.ended_at,
        "state": lambda task: task.state,
        "workflow": lambda task: task.workflow,
        "reference": lambda task: task.reference,
        "created": lambda task: task.id,
    }
    if order.column not in keys:
        return
    values = [keys[order.column](task) for task in tasks]
    there = [key for key in values if key is not None]
    assert values == there + [None] * (len(values) - len(there))
    assert there == sorted(there, reverse=order.descending)


def test_order_that_needs_too_many_tasks_is_refused(tasks, monkeypatch):
    monkeypatch.setattr("orchestration.console.queries.task_order.MOST", 3)
    query = read({"q": "with:background"}, personal=True).query
    page = listed(query, Order(column="attempts", descending=True))
    assert page.sorted_by.text == "-created"
    assert [row.task.id for row in page.rows] == sorted((t.id for t in tasks), reverse=True)
