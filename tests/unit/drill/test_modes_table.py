"""Every failure mode has a test that exists or a drill that can run."""

import ast
import inspect
import os
import re
import subprocess
import sys

import pytest

from drill import report
from drill.ha.stacks import KINDS
from drill.modes_table import HA, SHORT, InvalidMode, load
from drill.recipes import recipes
from drill.recipes.deploys import SETTINGS
from drill.report import PAGE, RESULTS
from drill.run import Result
from sasweb.stack import folders

TABLE = load()


def ids(modes):
    return [mode.id for mode in modes]


def functions(path):
    tree = ast.parse((folders.PROJECT / path).read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


@pytest.mark.parametrize("mode", TABLE, ids=ids(TABLE))
def test_mode_has_recipe_or_existing_tests(mode):
    assert mode.recipe or mode.shown_by, "neither a recipe nor a test"
    for node in mode.shown_by:
        path, _, name = node.partition("::")
        assert name.rpartition("::")[2] in functions(path), f"unknown test {node}"


@pytest.mark.parametrize("mode", [mode for mode in TABLE if mode.recipe], ids=lambda mode: mode.id)
def test_recipe_accepts_arguments_of_mode(mode):
    assert mode.recipe in recipes
    inspect.signature(recipes[mode.recipe]).bind(None, **mode.options)
    assert mode.servers in KINDS


@pytest.mark.parametrize(
    "change",
    sorted({mode.options["change"] for mode in TABLE if "change" in mode.options} | {"broken"}),
)
def test_deployed_release_passes_checks(change):
    new = {"DJANGO_SETTINGS_MODULE": SETTINGS, "DRILL_DEPLOY": change}
    check = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=folders.PROJECT, env=os.environ | new, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert check.returncode == 0, check.stderr


def test_modes_are_documented():
    page = PAGE.read_text()
    assert [mode.id for mode in TABLE if f"`{mode.id}`" not in page] == []
    assert [mode.id for mode in TABLE if mode.what not in page] == []


def test_crash_points_of_code_are_drilled():
    engine = (folders.PROJECT / "orchestration").rglob("*.py")
    named = re.compile(r"crash_points\.reached[,(]\s*\"([\w.]+)\"")
    points = {point for file in engine for point in named.findall(file.read_text())}
    drilled = {mode.options["point"] for mode in TABLE if "point" in mode.options}
    # the web's crash point is named in its recipe; a command's are in tests of its own
    archive = {point for point in points if point.startswith("archive.")}
    assert points - archive == drilled | {"web.after_commit_before_ring"}


def test_recipes_are_all_used():
    assert recipes.keys() - {mode.recipe for mode in TABLE} == set()


def test_pairs_have_enough_recipes():
    fit = [mode for mode in TABLE if mode.pairs]
    assert len({mode.recipe for mode in fit}) >= 5
    assert all(mode.recipe for mode in fit)


def test_short_selection_covers_families():
    families = {mode.family for mode in TABLE if mode.selection != HA}
    assert {mode.family for mode in TABLE if mode.selection == SHORT and mode.recipe} == families


@pytest.mark.parametrize(
    "row", ['id = "a"', 'id = "a"\nwhat = "b"\nhow = "c"\nselection = "long"', "nonsense = 1"]
)
def test_load_invalid_row_raises(tmp_path, row):
    (tmp_path / "a.toml").write_text(f'family = "A"\n\n[[mode]]\n{row}\n')
    with pytest.raises(InvalidMode, match=r"a\.toml"):
        load(tmp_path)


def test_load_repeated_id_raises(tmp_path):
    row = '[[mode]]\nid = "a"\nwhat = "b"\nhow = "c"\n'
    (tmp_path / "a.toml").write_text(f'family = "A"\n\n{row}\n{row}')
    with pytest.raises(InvalidMode, match="the id a"):
        load(tmp_path)


def test_results_keep_rows_of_other_modes(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("\n".join(["# Title", *RESULTS, "The end"]))

    def write(*outcomes):
        report.write(RESULTS, report.results(TABLE, outcomes, page), page)
        return page.read_text()

    def row(mode, orders):
        return Result(mode=mode, family="x", orders=orders)

    write(row("control", 1), row("do-500", 2), row("do-500 + backlog", 3))
    text = write(row("do-500", 20))
    assert [number for number in (1, 2, 20, 3) if f" | {number} | 0 | " in text] == [1, 20, 3]
    text = write(row("do-503 + backlog", 4))  # a new pair
    assert [number for number in (1, 20, 3, 4) if f" | {number} | 0 | " in text] == [1, 20, 4]
    assert text.count("### Pairs") == text.count("### Control") == 1
    assert text.endswith("The end")
