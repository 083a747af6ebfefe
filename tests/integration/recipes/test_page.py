"""The recipes of the page are short, pass the system checks, and are all tested."""

import re

import pytest
from django.core import checks

from orchestration import registry
from tests.integration.recipes.conftest import PAGE
from tests.support.markdown import blocks

PLAIN, *SECTIONS = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
RECIPES = {section.partition("\n")[0]: section for section in SECTIONS}
# How many lines the shortest declaration of six other engines takes, without the calls themselves: of
# Temporal, DBOS, Restate, Camunda, Conductor and Step Functions.
MOST = {
    "A payment that the customer confirms, with a webhook": 13,
    "A service that is asked until it is ready": 3,
    "Work that comes in parts": 4,
    "A review by a person, with a deadline and a default": 8,
    "A line that is digital, an order that is free": 4,
    "Another carrier where the first one refuses": 5,
    "A parcel from each warehouse": 9,
    "A task that is part of another": 1,
    "A release date": 1,
    "A date in the midst of an order": 1,
    "A reminder after three days": 4,
    "An order that is cancelled if it is not paid in time": 1,
    "A message from another program": 2,
    "A question about an order": 1,
    "An address that changes while the order runs": 6,
    "A report each night, one at a time": 2,
}
# Names, brackets and the steps of a plain order are no part of a recipe.
PLAIN_LINE = re.compile(
    r"""class\ .*|\ *(async\ )?def\ .*|\ *name\ ?=\ ?"\w+",?  # names
    |register\(Workflow\(name="wrap",\ steps=\[ship\("wrap"\)\]\)\)
    |register\(\w+\)|\ *(register\(|Workflow\(|steps=\[|Step\(|[\])]+,?)  # brackets
    |\ *(pay|ship|mail|read)\(("\w+")?(,\ )?(after=\["\w+"\])?\),|\ *""",
    re.VERBOSE,
)


def lines(block):
    return [line for line in block.splitlines() if not PLAIN_LINE.fullmatch(line)]


def added(recipe):
    """Return the lines that a recipe's code has beyond that of a plain order."""
    (plain,), code = blocks(PLAIN, "python"), "\n".join(blocks(recipe, "python"))
    also = {line.strip() for line in lines(plain)}
    return [line for line in lines(code) if line.strip() not in also]


@pytest.mark.parametrize("title", RECIPES)
def test_recipe_adds_no_more_lines_than_elsewhere(title):
    code = added(RECIPES[title])
    assert 0 < len(code) <= MOST[title], "\n".join(code)


def test_each_recipe_is_measured():
    assert [*MOST] == [*RECIPES]


def test_system_checks_find_no_mistake_in_the_recipes(page):
    registry.schedules.update(page["scheduled"])
    assert [message for message in checks.run_checks() if message.id.startswith("orch")] == []
