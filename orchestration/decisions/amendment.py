"""What an application changes as it has a step in error tried again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LONGEST_WAIT = 315_576_000  # seconds: ten years


@dataclass(frozen=True, kw_only=True)
class Amendment:
    """What an application changes as it resubmits a step: values by name; `wait` in seconds.

    `request` is of the step itself, `data` of the task's input, for the steps to come. `wait` is
    how long it must not be claimed yet. As long as it is then refused for the same reason, it waits
    for that long again, for `patience` seconds in all; after that a refusal is what the policy says.

    >>> Amendment(request={"to": "Eva"}, wait=3600.0).data
    {}
    """

    request: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    wait: float = 0.0
    patience: float = 0.0

    def __post_init__(self) -> None:
        """Refuse times that no row can have, or no page can show."""
        for name in ("wait", "patience"):
            seconds = getattr(self, name)
            if not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST_WAIT:
                raise ValueError(f"{name} is {seconds!r}, not 0 to {LONGEST_WAIT:,} seconds")


NOTHING = Amendment()
