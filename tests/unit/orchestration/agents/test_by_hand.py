"""What a service shows of something that was done by hand."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from orchestration import registry
from orchestration.agents import by_hand
from orchestration.agents.base import Agent
from orchestration.agents.errors import Transient


@dataclass
class Entered:
    agent: str = "till"
    action: str = "pay"
    request: dict[str, Any] = field(default_factory=dict)
    charges: None = None


class Till(Agent):
    name = "till"

    async def look_up(self, call, result):
        if isinstance(result["says"], Exception):
            raise result["says"]
        return result["says"]


@pytest.mark.parametrize(
    ("says", "shown"),
    [
        (True, True),
        (False, False),
        (None, None),
        # an agent's mistake shows nothing: another person must confirm it
        ("no", None),
        ({"found": False}, None),
        (Transient("unreachable"), None),
        (KeyError("id"), None),
    ],
)
def test_only_a_plain_yes_confirms_it(monkeypatch, says, shown):
    monkeypatch.setitem(registry.agents, "till", Till)
    assert by_hand.look_up(Entered(), {"says": says}, reference="r1") is shown
