"""Every failure mode in the table is shown: by a test that exists, or by a drill that can be run."""

import ast
import inspect
import os
import re
import subprocess
import sys

import pytest

from drill import report
from drill.recipes import recipes
from drill.recipes.deploys import SETTINGS
from drill.report import PAGE, RESULTS
from drill.run import Result
from drill.table import SHORT, BadTable, load
from sasweb.stack import folders

TABLE = load()


def ids(modes):
    return [mode.id for mode in modes]


def functions(path):
    tree = ast.parse((folders.PROJECT / path).read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


@pytest.mark.parametrize("mode", TABLE, ids=ids(TABLE))
def test_each_mode_is_shown(mode):
    assert mode.recipe or mode.shown_by, "it has neither a recipe nor a test"
    for node in mode.shown_by:
        path, _, name = node.partition("::")
        assert name in functions(path), f"there is no test {node}"


@pytest.mark.parametrize("mode", [mode for mode in TABLE if mode.recipe], ids=lambda mode: mode.id)
def test_each_recipe_exists_and_takes_what_it_is_given(mode):
    assert mode.recipe in recipes
    inspect.signature(recipes[mode.recipe]).bind(None, **mode.given)


@pytest.mark.parametrize(
    "change",
    sorted({mode.given["change"] for mode in TABLE if "change" in mode.given} | {"broken"}),
)
def test_what_is_deployed_would_start(change):
    new = {"DJANGO_SETTINGS_MODULE": SETTINGS, "DRILL_DEPLOY": change}
    check = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=folders.PROJECT, env=os.environ | new, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert check.returncode == 0, check.stderr


def test_each_mode_is_in_the_documentation():
    page = PAGE.read_text()
    assert [mode.id for mode in TABLE if f"`{mode.id}`" not in page] == []
    assert [mode.id for mode in TABLE if mode.what not in page] == []


def test_each_crash_point_is_in_the_code_and_in_the_table():
    engine = (folders.PROJECT / "orchestration").rglob("*.py")
    named = re.compile(r"crashpoints\.reached[,(]\s*\"([\w.]+)\"")
    points = {point for file in engine for point in named.findall(file.read_text())}
    drilled = {mode.given["point"] for mode in TABLE if "point" in mode.given}
    # the web's own is named in its recipe; "agent.before_call" serves the poisonous order as well
    assert points == drilled | {"web.after_commit_before_ring"}


def test_no_recipe_is_left_over():
    assert recipes.keys() - {mode.recipe for mode in TABLE} == set()


def test_enough_modes_can_be_paired():
    fit = [mode for mode in TABLE if mode.pairs]
    assert len({mode.recipe for mode in fit}) >= 5
    assert all(mode.recipe for mode in fit)


def test_each_family_has_a_drill_in_the_short_selection():
    families = {mode.family for mode in TABLE}
    assert {mode.family for mode in TABLE if mode.selection == SHORT and mode.recipe} == families


@pytest.mark.parametrize(
    "row", ['id = "a"', 'id = "a"\nwhat = "b"\nhow = "c"\nselection = "long"', "nonsense = 1"]
)
def test_a_row_that_makes_no_sense_is_refused(tmp_path, row):
    (tmp_path / "a.toml").write_text(f'family = "A"\n\n[[mode]]\n{row}\n')
    with pytest.raises(BadTable, match=r"a\.toml"):
        load(tmp_path)


def test_two_rows_with_one_id_are_refused(tmp_path):
    row = '[[mode]]\nid = "a"\nwhat = "b"\nhow = "c"\n'
    (tmp_path / "a.toml").write_text(f'family = "A"\n\n{row}\n{row}')
    with pytest.raises(BadTable, match="the id a"):
        load(tmp_path)


def test_a_run_leaves_the_rows_of_what_it_did_not_drill(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("\n".join(["# Title", *RESULTS, "The end"]))

    def write(*found):
        report.write(RESULTS, report.results(TABLE, found, page), page)
        return page.read_text()

    def row(mode, orders):
        return Result(mode=mode, family="x", orders=orders)

    write(row("control", 1), row("do-500", 2), row("do-500 + backlog", 3))
    text = write(row("do-500", 20))
    assert [number for number in (1, 2, 20, 3) if f" | {number} | 0 | " in text] == [1, 20, 3]
    text = write(row("do-503 + backlog", 4))  # other pairs
    assert [number for number in (1, 20, 3, 4) if f" | {number} | 0 | " in text] == [1, 20, 4]
    assert text.count("### Pairs") == text.count("### Control") == 1
    assert text.endswith("The end")
