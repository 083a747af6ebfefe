"""Make, change and remove schedules: those that code declares, and those made at run time."""

from typing import Any

from django.db import transaction

from .. import registry
from ..models import Schedule
from ..workflows.schedule import Schedule as Declared


def ensure_declared() -> None:
    """Create the missing rows of declared schedules; what an admin has set stays."""
    known = set(Schedule.objects.filter(declared=True).values_list("name", flat=True))
    for name in sorted(registry.schedules.keys() - known):
        defaults = {**registry.schedules[name].values, "declared": True}
        row, made = Schedule.objects.get_or_create(name=name, defaults=defaults)
        if not made:  # an application made it before the code declared it
            Schedule.objects.filter(id=row.id).update(declared=True)


@transaction.atomic
def put(schedule: Declared) -> None:
    """Create a schedule, or change the one of its name; a pause of an admin's stays.

    Raises `ValueError` for one that code declares.
    """
    values = schedule.values
    row, made = Schedule.objects.select_for_update().get_or_create(
        name=schedule.name, defaults=values
    )
    _require_own(row)
    changed = {name: value for name, value in values.items() if getattr(row, name) != value}
    changed.pop("paused", None)
    if changed and not made:
        _set(row, changed)
        row.save()


@transaction.atomic
def remove(name: str) -> bool:
    """Delete a schedule, reporting whether there was one. Raises `ValueError` for one that code declares."""
    row = Schedule.objects.select_for_update().filter(name=name).first()
    if row is None:
        return False
    _require_own(row)
    row.delete()
    return True


def _require_own(row: Schedule) -> None:
    if row.declared and row.name in registry.schedules:
        raise ValueError(
            f"the schedule {row.name!r} is declared by code: admins change it, or pause it"
        )


def _set(row: Schedule, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(row, name, value)
