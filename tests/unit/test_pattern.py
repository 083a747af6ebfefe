"""The page about the pattern is true: what it names exists, and its mutations can be made."""

import re

import pytest

from tests.pattern.table import BEGIN, END, PAGE, ROOT, as_page, exists, mutations, requirements

ROWS, MUTATIONS = requirements(), mutations()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_code_and_tests_of_each_requirement_exist(row):
    assert [place for place in row.code + row.tests if not exists(place)] == []
    assert row.code
    assert row.tests
    decisions = ROOT / "docs" / "understand" / "decisions"
    assert not row.deviates or (decisions / f"{row.deviates}.md").is_file()


def test_requirements_are_complete_and_listed_once():
    numbered = [f"P{number}" for number in range(1, 29)] + [f"S{number}" for number in range(1, 15)]
    assert [row.id for row in ROWS] == numbered


def test_requirement_numbers_in_the_code_exist():
    cited = {
        number
        for folder in ("orchestration", "orders")
        for path in (ROOT / folder).rglob("*.py")
        for number in re.findall(r"\bP\d{1,2}\b", path.read_text())
    }
    assert cited
    assert cited <= {row.id for row in ROWS} | {"P50", "P95", "P99"}  # percentiles


def test_page_has_the_current_table():
    page = PAGE.read_text()
    assert page.split(BEGIN)[1].split(END)[0].strip() == as_page(ROWS)


def test_deviations_are_all_explained():
    explained = PAGE.read_text().split("## Where it deviates")[1]
    assert [row.deviates for row in ROWS if row.deviates and row.deviates not in explained] == []


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda row: f"{row.requirement}-{row.file}")
def test_mutations_all_apply(mutation):
    text = (ROOT / mutation.file).read_text()
    assert mutation.applied(text) != text
    assert mutation.test in {
        test for row in ROWS if row.id == mutation.requirement for test in row.tests
    }


def test_ten_requirements_have_a_mutation():
    assert len({row.requirement for row in MUTATIONS}) >= 10


def test_page_has_a_section_on_when_not_to_use_the_pattern():
    page = PAGE.read_text()
    assert "\nDo not use it where\n" in page
    weighed = page.split("## Trade-offs")[1]
    for pillar in ("Reliability", "Performance", "Security", "Cost", "Operational excellence"):
        (row,) = [line for line in weighed.splitlines() if line.startswith(f"| {pillar}")]
        assert all(cell.strip() for cell in row.strip("|").split("|"))
