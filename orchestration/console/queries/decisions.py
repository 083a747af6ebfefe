"""What waits for the decision of a person: due first, those of one's own roles before the others."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Self

from django.db.models import Case, Q, Value, When

from ... import registry
from ...database import clock
from ...database.capped_counts import CAP
from ...models import Step, Wait
from ...people.redaction import Redactor, redactors

PAGE = 50


class After(NamedTuple):
    """The place of a row: of the roles of others, due when, and its number."""

    others: int
    ends_by: datetime
    number: int

    def __str__(self) -> str:
        return f"{self.others}~{self.ends_by.isoformat()}~{self.number}"

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the place that `text` names; raise `ValueError` if it names none."""
        others, ends_by, number = text.split("~")
        moment = datetime.fromisoformat(ends_by)
        if moment.tzinfo is None or not 0 <= int(number) < 2**63:
            raise ValueError(f"{text} is not a place")
        return cls(int(bool(int(others))), moment, int(number))


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A step that waits for a person; `wait` is None once it does not any more."""

    step: Step
    wait: Wait | None
    redactor: Redactor | None


@dataclass(frozen=True, kw_only=True)
class DecisionsPage:
    """One page; `next` is where the following one begins, `total` is counted to the cap."""

    now: datetime
    rows: Sequence[Decision]
    next: After | None
    total: int


def roles() -> list[str]:
    """Return the roles that declared workflows ask."""
    steps = (step for workflow in registry.workflows.values() for step in workflow.steps)
    return sorted({step.person for step in steps if step.person})


def decisions(
    *, role: str = "", mine: Collection[str] = (), after: After | None = None, personal: bool
) -> DecisionsPage:
    """Return a page of decisions: five queries for any number of them (index wait_person)."""
    asked = Wait.objects.filter(person=role) if role else Wait.objects.exclude(person="")
    own = Q(person__in=sorted(mine))
    first = [Case(When(own, then=Value(0)), default=Value(1))] if mine else []
    rows = list(asked.filter(_past(after, own)).order_by(*first, "ends_by", "id")[: PAGE + 1])
    last = rows[PAGE - 1] if len(rows) > PAGE else None
    return DecisionsPage(
        now=clock.database_now(),
        rows=_rows(rows[:PAGE], personal=personal),
        next=_place(last, mine) if last else None,
        total=asked.order_by()[: CAP + 1].count(),
    )


def of_step(step: Step, *, personal: bool) -> Decision:
    """Return the row of one step: as it waits, or as it ended."""
    wait = Wait.objects.filter(step=step).defer("report").first()
    hidden = {} if personal else redactors([step.task])
    return Decision(step=step, wait=wait, redactor=hidden.get(step.task_id))


def _place(wait: Wait, mine: Collection[str]) -> After | None:
    if wait.ends_by is None:
        return None  # constraint wait_ends: it has one
    return After(int(wait.person not in mine), wait.ends_by, wait.id)


def _past(after: After | None, own: Q) -> Q:
    """Return what comes after a place: those of one's own roles come first."""
    if after is None:
        return Q()
    due = Q(ends_by__gt=after.ends_by) | Q(ends_by=after.ends_by, id__gt=after.number)
    return ~own & due if after.others else own & due | ~own


def _rows(waits: Sequence[Wait], *, personal: bool) -> list[Decision]:
    """Return the rows with their steps; a step that has ended since is left out."""
    read = Step.objects.select_related("task").filter(id__in=[wait.step_id for wait in waits])
    if personal:
        read = read.defer("task__data")  # it may be large; only a redactor needs it
    steps = {step.id: step for step in read}
    hidden = {} if personal else redactors(step.task for step in steps.values())
    return [
        Decision(
            step=steps[wait.step_id],
            wait=wait,
            redactor=hidden.get(steps[wait.step_id].task_id),
        )
        for wait in waits
        if wait.step_id in steps
    ]
