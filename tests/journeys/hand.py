"""A person's hand: it clicks and types in a real browser, and counts what it does."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from playwright.sync_api import Locator, Page, expect

from drill.waiting import wait_for


@dataclass(kw_only=True)
class Journey:
    """What one journey took: clicks, texts typed, choices, commands; seconds until the goal was seen.

    The seconds are those of the software: a script neither reads nor hesitates.
    """

    name: str
    goal: str
    clicks: int = 0
    texts: int = 0
    commands: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)


class Hand:
    """Acts on a page, and adds what it does to a journey."""

    def __init__(self, page: Page, journey: Journey) -> None:
        self.page = page
        self.journey = journey
        self.began = time.monotonic()

    def click(self, target: Locator) -> None:
        """Click, and count it."""
        self.journey.clicks += 1
        target.click()

    def type(self, target: Locator, text: str) -> None:
        """Type a text into a field, as the page has put the focus there or by Tab: no click."""
        self.journey.texts += 1
        target.fill(text)

    def choose(self, target: Locator, value: str) -> None:
        """Choose from a list: one click opens it, one chooses."""
        self.journey.clicks += 2
        target.select_option(value)

    def press(self, keys: str) -> None:
        """Press a key that sends a form or is a shortcut; it counts as a click."""
        self.journey.clicks += 1
        self.page.keyboard.press(keys)

    def reach(self, goal: Locator, *, seconds: float = 60) -> None:
        """Wait until the goal is seen, and stop the watch."""
        expect(goal).to_be_visible(timeout=seconds * 1000)
        self.journey.seconds = time.monotonic() - self.began

    def until(self, reached: Callable[[], object], *, seconds: float = 60) -> None:
        """Wait until a condition holds, and stop the watch."""
        wait_for(reached, f"{self.journey.name}: {self.journey.goal}", seconds)
        self.journey.seconds = time.monotonic() - self.began
