"""What a bulk operation on a search means: its tasks, and which of their failed steps."""

import pytest

from orchestration.console.selection import Meaningless, meaning
from orchestration.models import Step
from orchestration.models.operation import Act
from orchestration.operations import items
from tests.support.engine import in_error, new_task, run_to_end

pytestmark = pytest.mark.django_db


@pytest.fixture
def failed():
    """Two tasks in error at one step, by their references, and one that has ended."""
    steps = {name: in_error(new_task(name)) for name in ("one", "two")}
    Step.objects.filter(id=steps["two"].id).update(error_code="timeout")
    run_to_end(new_task("done"))
    return steps


@pytest.mark.parametrize(
    ("query", "tasks"),
    [
        ("state:error", ["one", "two"]),
        ("-error:timeout state:error", ["one"]),
        ("error:timeout OR reference:one", ["one", "two"]),
        ("error:timeout OR error:rejected sort:-value columns:task", ["one", "two"]),
        ("(error:timeout OR reference:done) -state:processed", ["two"]),
        ("error:timeout -error:time", []),
        ("NOT state:error", []),
    ],
)
def test_search_means_its_failed_steps(failed, query, tasks):
    chosen = meaning({"query": f"q={query.replace(' ', '+')}"})
    figures = items.preview_figures(Act.RESUBMIT, chosen)
    assert figures["eligible"] == len(tasks)
    expected = {failed[name].id for name in tasks}
    if chosen.steps is not None:
        assert set(chosen.steps) & {step.id for step in failed.values()} == expected
    else:
        assert {failed[name].task_id for name in tasks} <= set(chosen.tasks)


def test_step_of_another_alternative_is_left_alone(failed):
    """Of a task that is found by one step, another failed step is not meant."""
    other = failed["two"]
    step = Step.objects.get(id=failed["one"].id)
    step.pk, step.name, step.task_id = None, "again", other.task_id
    Step.objects.filter(task=other.task_id, name="again").delete()
    step.save()
    chosen = meaning({"query": "q=error:timeout+OR+reference:one"})
    assert set(chosen.steps) == {other.id, failed["one"].id}


@pytest.mark.parametrize("query", ["q=(a", "q=a+OR", "q=stp:x"])
def test_search_that_is_not_understood_means_nothing(query):
    with pytest.raises(Meaningless):
        meaning({"query": query})
