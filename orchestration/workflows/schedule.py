"""Schedules as applications declare them: tasks of a workflow that are submitted by the calendar."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

DAY = 86_400.0


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Tasks of a workflow that are submitted by the calendar; the first values of a row that admins change.

    It is due by `cron` (five fields) in the time zone `zone`, or `every` some seconds from the time
    `start_at` on. Each due time is one task, with the reference `name/due time` in UTC and the input `data`;
    with `due_field`, that field of the input has the due time as clocks of the zone show it (ISO 8601).

    `overlap` says what happens while the task of the due time before has not ended: "skip" the new one,
    "queue" one (more are skipped), or "allow" it. `catch_up` says which of the due times are submitted that
    passed while nothing could be, up to `catch_up_within` seconds before: "none", the last "one", or "all".
    `jitter` spreads the tasks of many schedules: each comes up to this number of seconds after its due time.

    >>> greet = Step(name="greet", agent="greeter", action="greet", request={"to": field("name")}, undo=None)
    >>> register(Workflow(name="morning", steps=[greet]))
    >>> register(Schedule(name="mornings", workflow="morning", data={"name": "Ada"}, cron="0 8 * * MON-FRI",
    ...                   zone="Europe/London"))
    """

    name: str
    workflow: str
    data: Mapping[str, Any] = field(default_factory=dict)
    due_field: str = ""
    cron: str = ""
    zone: str = "UTC"
    every: int | None = None
    start_at: datetime | None = None
    overlap: str = "skip"
    catch_up: str = "one"
    catch_up_within: float = DAY
    jitter: float = 0.0
    priority: int = 0
    fairness_key: str = ""
    reply_to: str = ""
    paused: bool = False

    @property
    def values(self) -> dict[str, Any]:
        """What its row is set to, but for the name."""
        return {
            **{name: value for name, value in vars(self).items() if name != "name"},
            "data": dict(self.data),
        }
