"""Search of the command palette: tasks, incidents, agents and workflows, a few of each."""

from collections.abc import Sequence
from dataclasses import dataclass

from ... import registry
from ...database import sql
from ...models import Incident, Task
from ...states import TaskState
from . import search_query, task_filters, word_meanings

MOST = 5  # of each kind
SHORTEST = 2  # characters


@dataclass(frozen=True, kw_only=True)
class Hit:
    """Something that was found: at `route` of the dashboard with `key`, or at a place of that page.

    `query` is what its page searches for.
    """

    kind: str
    name: str
    note: str = ""
    route: str
    key: object = None
    place: str = ""
    query: str = ""


def hits(text: str, *, personal: bool) -> Sequence[Hit]:
    """Return matches of a text, in a few queries; `personal` as in a search of tasks."""
    text = sql.storable(text)
    if len(text) < SHORTEST:
        return []
    return [*_tasks(text, personal=personal), *_incidents(text), *_declared(text)]


def _tasks(text: str, *, personal: bool) -> list[Hit]:
    search = search_query.read({"q": text}, personal=personal)
    if search.problems:
        return []
    ids = task_filters.page(word_meanings.resolved(search).query, MOST + 1)
    more = Hit(kind="Search", name="All tasks that match", route="tasks", query=search.text)
    tasks = Task.objects.defer("data").in_bulk(ids[:MOST])
    matches = [
        Hit(
            kind="Task",
            name=task.name,
            note=f"{task.workflow}, {TaskState(task.state).label.lower()}",
            route="task",
            key=task.id,
        )
        for task in (tasks[id_] for id_ in ids[:MOST] if id_ in tasks)
    ]
    return [*matches, more] if len(ids) > MOST else matches


def _incidents(text: str) -> list[Hit]:
    """Return incidents by words of their titles: there is one for each cause, so they are few."""
    matches = Incident.objects.all()
    for word in text.split()[:MOST]:
        matches = matches.filter(title__icontains=word)
    return [
        Hit(
            kind="Incident",
            name=incident.title,
            note=incident.state,
            route="incident",
            key=incident.id,
        )
        for incident in matches.order_by("-last_seen")[:MOST]
    ]


def _declared(text: str) -> list[Hit]:
    kinds = (
        ("Agent", "agents", "agent", registry.agents),
        ("Workflow", "workflows", "workflow", registry.workflows),
    )
    return [
        Hit(kind=kind, name=name, route=route, place=f"{place}-{name}")
        for kind, route, place, names in kinds
        for name in [name for name in sorted(names) if text.lower() in name.lower()][:MOST]
    ]
