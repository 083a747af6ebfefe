"""Each agent has a colour of its own in the charts, and distinct in both themes."""

import re
from itertools import combinations
from math import dist
from pathlib import Path

import pytest

from orchestration.console.charts.trends import SHADES, shade
from orchestration.console.queries.trends import RANGES, Trends

STATIC = Path(__file__).parents[5] / "static"
HUE = re.compile(r"\.chart \.shade-(\d+) \{ --hue: light-dark\((#\w{6}), (#\w{6})\); \}")
SHEET = re.search(r"--sheet: light-dark\((#\w+), (#\w+)\)", (STATIC / "sas.css").read_text())
THEMES = {"light": 0, "dark": 1}
LEAST_CONTRAST = 3.0  # of what is drawn: WCAG 2.2, 1.4.11
LEAST_DISTANCE = 0.1  # in OKLab, where colours side by side look the same below some 0.02


def linear(colour):
    """Return the parts of a colour as linear light."""
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def contrast(colour, other):
    """Return the contrast of two colours, as WCAG defines it."""
    low, high = sorted(
        0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in map(linear, (colour, other))
    )
    return (high + 0.05) / (low + 0.05)


def oklab(colour):
    """Return a colour in OKLab (Ottosson 2020), where distances are as people see them."""
    r, g, b = linear(colour)
    long, middle, short = (
        (x * r + y * g + z * b) ** (1 / 3)
        for x, y, z in (
            (0.4122214708, 0.5363325363, 0.0514459929),
            (0.2119034982, 0.6806995451, 0.1073969566),
            (0.0883024619, 0.2817188376, 0.6299787005),
        )
    )
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    )


@pytest.mark.parametrize("theme", THEMES)
def test_colours_differ_from_each_other_and_from_what_they_are_drawn_on(theme):
    hues = HUE.findall((STATIC / "ops" / "ops.css").read_text())
    assert [int(number) for number, *_ in hues] == list(range(SHADES))
    colours = [pair[THEMES[theme]] for _, *pair in hues]
    sheet = SHEET[THEMES[theme] + 1]
    assert min(contrast(colour, sheet) for colour in colours) >= LEAST_CONTRAST
    assert min(dist(oklab(a), oklab(b)) for a, b in combinations(colours, 2)) >= LEAST_DISTANCE


def shades(*added, of):
    seen = Trends(
        range=RANGES["1h"], starts=[], tasks=[], steps=[], gates={}, added=added, p50=None, p95=None
    )
    return [shade(seen, agent) for agent in of]


def test_agent_keeps_its_colour_when_another_is_added():
    assert shades("stock", "bank", of=["stock", "bank"]) == shades(
        "stock", "bank", "a-new-one", of=["stock", "bank"]
    )


def test_no_two_agents_look_the_same():
    agents = [f"agent-{number}" for number in range(2 * SHADES)]
    assert len(set(shades(*agents, of=agents))) == 2 * SHADES
    assert len({hue.split()[0] for hue in shades(*agents[:SHADES], of=agents[:SHADES])}) == SHADES
