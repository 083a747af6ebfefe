"""What operators do, many times over. Run in a stack's own environment: `python -m drill.act …`."""

import sys
from collections.abc import Callable, Sequence

import django

REASON = "by the drill"


def undo(references: Sequence[str]) -> None:
    """Have tasks undone; print the references of those that were refused, and why."""
    from orchestration.models import Task
    from orchestration.transitions import undo as undoing

    for reference in references:
        task = Task.objects.get(reference=reference)
        refusal = undoing.undo(task.id, actor="drill", reason=REASON)
        if refusal is not None:
            print(f"{reference} {refusal.value}")


def hold(agents: Sequence[str]) -> None:
    """Hold agents: their steps wait."""
    from orchestration.transitions import holds

    for agent in agents:
        holds.hold(actor="drill", reason=REASON, agent=agent)


def release(agents: Sequence[str]) -> None:
    """Release agents that were held."""
    from orchestration.models import Hold
    from orchestration.transitions import holds

    for one in Hold.objects.filter(agent__in=agents, until=None, actor="drill"):
        holds.release(one.id, actor="drill", reason=REASON)


def resubmit(references: Sequence[str]) -> None:
    """Have the failed steps of tasks resubmitted by one bulk operation; print its id."""
    from orchestration import operations
    from orchestration.models import Task
    from orchestration.models.operation import Act

    tasks = Task.objects.filter(reference__in=references)
    selection = {"tasks": [str(task) for task in tasks.values_list("id", flat=True)]}
    meant = operations.meaning(selection)
    operation = operations.draft(Act.RESUBMIT, selection, meant, actor="drill")
    refusal = operations.confirm(operation.id, meant, actor="drill", reason=REASON, rate=500)
    assert refusal is None, refusal.value
    print(operation.id)


ACTS: dict[str, Callable[[Sequence[str]], None]] = {
    act.__name__: act for act in (undo, hold, release, resubmit)
}

if __name__ == "__main__":
    django.setup()
    ACTS[sys.argv[1]](sys.argv[2:])
