"""What the partner's ledger says of tasks of these workflows, their children included."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from drill.servers import Clients

# Those with these references, and all below them: the references of children are "parent/step/index".
OF_THE_MODE = r"""
t.workflow LIKE 'drill\_%%' AND (t.reference = ANY(%s) OR split_part(t.reference, '/', 1) = ANY(%s))
"""
TASKS = f"SELECT t.id::text, t.reference, t.state FROM orchestration_task t WHERE {OF_THE_MODE}"
# What stands by the state store, under the keys that the partner got.
STANDING = f"""
SELECT t.id::text, t.id || ':' || s.name || ':do:' || s.generation
FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE {OF_THE_MODE} AND t.state = 'processed' AND s.direction = 'do' AND s.agent = 'bench'
    AND s.process_state = 'processed'
"""
# What the partner accepted, and refused later: it has no effect, and is not taken back.
REFUSED = f"""
SELECT t.id || ':' || s.name || ':do:' || s.generation
FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE {OF_THE_MODE} AND s.direction = 'do' AND s.agent = 'bench' AND s.outcome = 'rejected' AND NOT s.in_doubt
"""
PAGE = 10_000


class Effect(NamedTuple):
    """What the partner did: under which key, and when; `voids` is the key of what it took back."""

    key: str
    at: datetime
    voids: str = ""

    @property
    def task(self) -> str:
        """Return the id of the task of what was done."""
        return (self.voids or self.key).partition(":")[0]

    @property
    def step(self) -> str:
        """Return the name of its step."""
        return (self.voids or self.key).split(":")[1]


def effects(stack: Clients, tasks: Collection[str]) -> list[Effect]:
    """Return what the partner did for tasks, in its order."""
    done: list[Effect] = []
    after: int | None = 0
    while after is not None:
        page = stack.sandbox(f"/ledger?partner=bench&limit={PAGE}&after={after}")
        after = page["next"]
        for entry in page["entries"]:
            if entry["effect"] in {"call", "void"}:
                at = datetime.fromisoformat(entry["at"])
                done.append(Effect(entry["key"], at, entry["target"] or ""))
    return [effect for effect in done if effect.task in tasks]


def judge(stack: Clients, references: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return what a partner did too often, and what is wrong with the end, of each task by its reference.

    References without a task of these workflows are left out.
    """
    mine = list(references)
    names, troubles = dict[str, str](), dict[str, tuple[str, str]]()
    for task, reference, state in stack.sql(TASKS, mine, mine):
        names[task] = reference
        stuck = "" if state in {"processed", "undone"} else f"ended {state}"
        troubles[reference] = ("", stuck)
    if not names:
        return {}
    expected: dict[str, set[str]] = defaultdict(set)
    for task, name in stack.sql(STANDING, mine, mine):
        expected[task].add(name)
    refused = {name for (name,) in stack.sql(REFUSED, mine, mine)}
    stands: dict[str, set[str]] = defaultdict(set)
    for effect in effects(stack, names):
        if effect.voids:
            stands[effect.task].discard(effect.voids)
        elif effect.key not in refused:
            stands[effect.task].add(effect.key)
    for task, reference in names.items():
        double, missing = stands[task] - expected[task], expected[task] - stands[task]
        bad = troubles[reference][1] or (f"missing: {sorted(missing)}" if missing else "")
        troubles[reference] = (f"too much stands: {sorted(double)}" if double else "", bad)
    return troubles
