"""The verdicts of docs/use/patterns.md: each pattern that is declared does what defines it."""

import re
from collections import Counter
from uuid import uuid4

import pytest
from django.core import checks

from orchestration import api, registry
from orchestration.models import TaskRequest
from orchestration.testing.outcomes import later
from sasweb.stack.folders import PROJECT
from tests.support.markdown import blocks

PAGE = (PROJECT / "docs" / "use" / "patterns.md").read_text()
ROWS = re.findall(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
SHOWN = set()  # the patterns that a test of this module shows


def shows(*patterns):
    """Mark the test that shows what defines a pattern."""
    SHOWN.update(patterns)
    return lambda test: test


@pytest.fixture
def declared(monkeypatch):
    """The workflows of the page, registered until the test ends."""
    for table in ("agents", "workflows"):
        monkeypatch.setattr(registry, table, dict(getattr(registry, table)))
    names = {"__name__": "patterns"}
    exec(compile("\n".join(blocks(PAGE, "python")), "docs/use/patterns.md", "exec"), names)
    for workflow in [value for value in names.values() if isinstance(value, api.Workflow)]:
        api.register(workflow)


@pytest.fixture
def start(declared, request):
    """Submit a task of a workflow; all its calls are accepted, and end when the test says so."""
    run = request.getfixturevalue("run")
    run.script("works.do", later())

    def submit(workflow, **data):
        task = run.submit(workflow, data)
        run.go()
        return Watched(run, task)

    return submit


class Watched:
    """A task whose steps end as the test says."""

    def __init__(self, run, task):
        self.run, self.task = run, task

    def end(self, *steps, **result):
        for step in steps:
            self.run.complete(self.task, step, result)
            self.run.go()

    def child(self, workflow, step, number=0):
        """Return a child of this task, watched as well."""
        return Watched(self.run, self.run.task(workflow, f"{self.task.reference}/{step}/{number}"))

    def undo(self):
        task = self.task
        api.request_undo(task.workflow, task.reference, actor="ann", reason="no", id=uuid4())
        self.run.go()

    @property
    def begun(self):
        """The steps that were called, in their order."""
        return [call.step for call in self.task.calls() if call.direction == "do"]

    @property
    def skipped(self):
        return {step for step, state in self.task.steps.items() if state == "skipped"}

    @property
    def state(self):
        return self.task.state


@shows(1)
def test_sequence_begins_each_step_as_the_one_before_ends(start):
    task = start("sequence")
    assert task.begun == ["a"]
    task.end("a")
    assert task.begun == ["a", "b"]


@shows(2, 3)
def test_split_goes_on_in_both_branches_and_the_join_waits_for_both(start):
    task = start("split")
    task.end("a")
    assert task.begun == ["a", "b", "c"]  # neither has ended
    task.end("c")
    assert task.begun == ["a", "b", "c"]
    task.end("b")
    assert task.begun == ["a", "b", "c", "d"]


@shows(4, 5)
@pytest.mark.parametrize(("by_air", "branch"), [(True, "b"), (False, "c")])
def test_one_branch_is_chosen_and_the_merge_waits_for_no_other(start, by_air, branch):
    task = start("choice", by_air=by_air)
    assert task.begun == [branch]
    task.end(branch)
    assert task.begun == [branch, "d"]
    task.end("d")
    assert task.state == "processed"


@shows(6, 7)
@pytest.mark.parametrize("chosen", [[], ["b"], ["c"], ["b", "c"]])
def test_any_branches_are_chosen_and_the_merge_waits_for_these_once(start, chosen):
    task = start("choices", wrapped="b" in chosen, insured="c" in chosen)
    assert task.begun == (chosen or ["d"])
    for number, branch in enumerate(chosen, 1):
        task.end(branch)
        assert task.begun == [*chosen, *(["d"] if number == len(chosen) else [])]


NAMES = ["x", "y", "z"]


def instances(task):
    """Return the children of a task of NAMES; each has begun."""
    children = [task.child("one", "all", number) for number in range(3)]
    assert [child.begun for child in children] == [["do"]] * 3
    return children


@shows(12)
def test_no_step_waits_for_instances_that_nothing_comes_after(start):
    task = start("loose", names=NAMES)
    children = instances(task)
    assert task.begun == ["d"]
    for child in children:
        child.end("do")
    assert task.state == "processing"  # its own step goes on
    task.end("d")
    assert task.state == "processed"


@shows(14)
@pytest.mark.parametrize("names", [[], ["x"], NAMES])
def test_as_many_instances_run_as_the_input_says_and_are_joined(start, names):
    task = start("many", names=names)
    for number in range(len(names)):
        assert task.begun == []
        task.child("one", "all", number).end("do")
    assert task.begun == ["d"]


@shows(26, 27)
def test_instances_that_have_not_ended_are_cancelled_and_the_others_count(start):
    task = start("some", names=NAMES)
    first, second, third = instances(task)
    first.end("do", id="x")
    second.undo()
    assert task.begun == []
    third.undo()
    assert (first.state, second.state, third.state) == ("processed", "undone", "undone")
    assert task.begun == ["d"]


@shows(35)
def test_second_instance_that_ends_has_the_task_go_on_and_the_others_cancelled(start):
    task = start("enough", names=NAMES)
    first, second, third = instances(task)
    third.end("do")
    assert task.begun == []
    first.end("do")
    task.run.go()
    assert task.begun == ["d"]
    assert (first.state, second.state, third.state) == ("processed", "undone", "processed")


@shows(19, 25)
def test_region_is_cancelled_and_the_rest_goes_on(start):
    task = start("regions")
    region = task.child("region", "part")
    region.end("a")
    assert region.begun == ["a", "b"]
    region.undo()
    assert (region.state, region.task.steps["b"]) == ("undone", "cancelled")
    assert task.begun == ["c"]  # not withdrawn
    task.end("c")
    assert task.begun == ["c", "d"]


@shows(22)
def test_workflow_begins_itself_until_its_condition_ends_that(start):
    task = start("nested", levels={"name": "x", "next": {"name": "y", "next": {"name": "z"}}})
    levels = [task]
    for _ in range(2):
        levels[-1].end("a")
        levels.append(levels[-1].child("nested", "next"))
    assert [level.state for level in levels] == ["processing"] * 3
    levels[-1].end("a")
    assert [level.state for level in levels] == ["processed"] * 3


@shows(11)
@pytest.mark.parametrize("order", ["bc", "cb"])
def test_task_ends_as_its_last_step_does_whichever_that_is(start, order):
    task = start("ends")
    task.end("a", order[0])
    assert task.state == "processing"
    task.end(order[1])
    assert task.state == "processed"


@shows(13)
def test_three_instances_run_at_once_and_are_joined(start):
    task = start("checks")
    instances = ["check_0", "check_1", "check_2"]
    assert task.begun == instances
    task.end("check_2", "check_0")
    assert task.begun == instances
    task.end("check_1")
    assert task.begun == [*instances, "d"]


@shows(16)
@pytest.mark.parametrize(
    ("first", "second", "branch"),
    [("accepted", "withdrawn", "ship"), ("withdrawn", "accepted", "refund")],
)
def test_first_event_decides_and_withdraws_the_others(start, first, second, branch):
    task = start("deferred")
    assert task.begun == []  # nothing is decided before
    task.end("answer", **{first: True})
    task.end("answer", **{second: True})
    task.run.wait(3600)
    assert task.begun == [branch]
    assert TaskRequest.objects.order_by("id").last().refusal == "REPORTED"


@shows(16)
def test_time_is_an_event_as_well(start):
    task = start("deferred")
    task.run.wait(3600)
    task.end("answer", accepted=True)
    assert task.begun == ["remind"]


@shows(18)
def test_milestone_has_to_be_reached(start):
    task = start("milestone")
    task.end("moved")  # it is kept until then
    assert task.begun == ["pay"]
    task.end("pay")
    assert task.begun == ["pay", "ship", "readdress"]


@shows(18)
def test_milestone_is_over_once_it_is_passed(start):
    task = start("milestone")
    task.end("pay", "ship", "moved")
    assert (task.begun, task.skipped) == (["pay", "ship"], {"readdress"})
    assert task.state == "processed"


@shows(20)
def test_case_is_cancelled_with_all_that_runs(start):
    task = start("cancelled")
    task.end("a")
    task.undo()
    assert (task.state, task.task.undone) == ("undone", ["b", "a"])
    assert task.begun == ["a", "b"]
    assert task.task.steps["c"] == "cancelled"


@shows(24)
@pytest.mark.parametrize("early", [True, False])
def test_trigger_is_kept_until_it_is_awaited(start, early):
    task = start("triggered")
    for step in ("go", "a") if early else ("a", "go"):
        task.end(step)
    assert task.begun == ["a", "b"]


@shows(37)
@pytest.mark.parametrize("branches", ["", "b", "bc", "cd", "bcd"])
def test_merge_waits_for_what_is_to_come_of_any_choice(start, branches):
    task = start("local", **{name: name in branches for name in "bcd"})
    task.end("a")
    for branch in branches:
        assert "m" not in task.begun
        task.end(branch)
    assert sorted(task.begun) == ["a", *branches, "m", "n"]


def test_page_has_all_patterns_and_counts_their_verdicts():
    assert [int(number) for number, *_ in ROWS] == [*range(1, 44)]
    counts = Counter(verdict for *_, verdict, _ in ROWS)
    stated = re.search(
        r"(\d+) are declared, (\d+) need a workaround, (\d+) cannot be had, and (\d+) do", PAGE
    )
    verdicts = ("declared", "workaround", "no", "does not apply")
    assert stated.groups() == tuple(str(counts[verdict]) for verdict in verdicts)
    assert {*counts} == {*verdicts}


def test_each_declared_pattern_is_shown_and_no_other():
    assert {int(number) for number, _, verdict, _ in ROWS if verdict == "declared"} == SHOWN


@pytest.mark.parametrize(("number", "name", "verdict", "how"), ROWS)
def test_declared_pattern_has_its_declaration(number, name, verdict, how):
    titles = re.findall(r"^### (.*)$", PAGE, re.MULTILINE)
    (*titled,) = [title for title in titles if f"{number} {name}" in title.split(", and ")]
    assert len(titled) == ("](#" in how) == (verdict == "declared")


@pytest.mark.usefixtures("declared")
def test_system_checks_find_no_mistake_in_the_patterns():
    assert [message for message in checks.run_checks() if message.id.startswith("orch")] == []
