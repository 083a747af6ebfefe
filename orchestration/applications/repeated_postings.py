"""Tell a submission that is posted again from another one of the same reference.

It is compared with what was posted. A task keeps a hash of that, as its input may have been amended since.
The database makes it, of jsonb as text: the order of keys does not matter.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db.models import F, Func, OuterRef, Subquery, TextField
from django.db.models.functions import Cast, NullIf

from ..database import sql
from ..models import RemovedTask, Submission, Task
from ..models.fields import read_json
from ..models.retention import ContentHash, RemovalKey, content_hash
from ..workflows.workflow import Refused

HASHES = f"""
SELECT {content_hash("data")}::text
FROM unnest(%(data)s::jsonb[]) WITH ORDINALITY AS p (data, position) ORDER BY position
"""  # noqa: S608 - put together from constants


class Earlier(NamedTuple):
    """What is known of the task that has a reference.

    `posted` is the hash of what was posted, if the task is gone or its input is another one by now. Else
    it is empty: `data` is compared.
    """

    data: Any
    posted: str | None
    removed: bool


def columns() -> tuple[Subquery, Subquery]:
    """Return what `earlier` takes, as columns of a queryset of submissions.

    Tasks and removed ones in one statement: what another session moves from one place to the other is
    seen in one of them.
    """
    named = OuterRef("workflow"), OuterRef("reference")
    task = Task.objects.filter(workflow=named[0], reference=named[1])
    amended = Cast(NullIf(F("posted"), ContentHash("data")), TextField())
    both = Func(
        Cast("data", TextField()),
        amended,
        template="ARRAY[%(expressions)s]",
        output_field=TextField(),
    )
    removed = RemovedTask.objects.filter(key=RemovalKey(*named))
    return (
        Subquery(task.values(known=both)),
        Subquery(removed.values(text=Cast("content", TextField()))),
    )


def earlier(task: Sequence[Any] | None, removed: str | None) -> Earlier | None:
    """Return what is known of a reference, by the values of `columns`; None: it is free."""
    if task is not None:
        data, posted = task
        return Earlier(read_json(data), posted, removed=False)
    return Earlier(None, removed, removed=True) if removed is not None else None


def known(ids: Sequence[int]) -> dict[tuple[str, str], Earlier]:
    """Return what is known of the references of submissions, by workflow and reference."""
    rows = Submission.objects.filter(id__in=ids).values_list("workflow", "reference", *columns())
    return {
        (workflow, reference): before
        for workflow, reference, *values in rows
        if (before := earlier(*values)) is not None
    }


def require_same(repeated: Sequence[tuple[Earlier, Any]]) -> None:
    """Raise `Refused` unless each of these inputs is what was posted before."""
    hashes = iter(_hashes([data for before, data in repeated if before.posted is not None]))
    for before, data in repeated:
        same = data == before.data if before.posted is None else next(hashes) == before.posted
        if not same:
            taken = "was taken by a removed task" if before.removed else "is taken by a task"
            raise Refused(f"its reference {taken} with other content")


def _hashes(inputs: Sequence[Any]) -> list[str]:
    """Return the hashes of inputs, as the database makes them of those that it stores."""
    if not inputs:
        return []
    return [text for (text,) in sql.run(HASHES, {"data": sql.as_json(inputs)})]
