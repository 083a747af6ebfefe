"""The counting of `make house`, on small trees made for each test."""

import subprocess
from pathlib import Path

import pytest

from tests.house import files, imports, words
from tests.house.report import Row, of_files, rows

ROOT = Path(__file__).parents[2]
LAYERS = [["top"], ["left", "right"], ["low"]]


@pytest.fixture
def package(tmp_path, monkeypatch, request):
    """Write modules of an importable package, and return its name."""
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"planted_{abs(hash(request.node.name))}"

    def write(**sources):
        for path, text in {"__init__": "", **sources}.items():
            file = tmp_path / name / f"{path.replace('__in_', '/')}.py"
            file.parent.mkdir(exist_ok=True)
            file.write_text(text.replace("PACKAGE", name))
            (file.parent / "__init__.py").touch()
        return name

    return write


def test_circles_of_modules_in_one_room(package):
    name = package(
        low__in_one="from . import two",
        low__in_two="def later():\n    from .one import later",
        top="from PACKAGE.low import one",
    )
    graph = imports.modules(name)
    assert imports.circles(graph) == [[f"{name}.low.one", f"{name}.low.two"]]
    assert imports.circles(imports.rooms(graph)) == []


def test_circles_of_rooms_without_a_circle_of_modules(package):
    name = package(
        left__in_one="from PACKAGE.right import two",
        right__in_two="",
        right__in_three="import PACKAGE.left.four",
        left__in_four="",
    )
    graph = imports.modules(name)
    assert imports.circles(graph) == []
    assert imports.circles(imports.rooms(graph)) == [["left", "right"]]


def test_circles_when_a_node_is_reached_through_others():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert imports.circles(graph) == [["a", "b", "c"], ["d", "e"]]


def test_imports_for_type_checkers_only(package):
    name = package(
        low="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import PACKAGE.top",
        top="import PACKAGE.low",
    )
    graph = imports.modules(name)
    assert imports.upward(graph, LAYERS) == imports.circles(graph) == []


def test_imports_upward(package):
    name = package(
        low="def later():\n    import PACKAGE.top",
        left="import PACKAGE.right\nimport PACKAGE.low",
        right="import PACKAGE.low",
        top="import PACKAGE.left",
    )
    assert imports.upward(imports.modules(name), LAYERS) == [(f"{name}.low", f"{name}.top")]


def test_imports_of_migrations(package):
    name = package(migrations__in_first="import PACKAGE.top", top="")
    assert imports.rooms(imports.modules(name)) == {"top": set()}


def test_layers_of_the_contract(tmp_path):
    config = tmp_path / ".importlinter"
    config.write_text(
        "[importlinter:contract:layers]\ntype = layers\nlayers =\n    top\n    (left) | right\n    low\n"
    )
    assert imports.layers(config) == LAYERS


def test_limits_of_this_tree():
    assert [row for row in rows(ROOT) if row.broken] == []


@pytest.mark.parametrize(("lines", "path", "broken"), [
    (300, "drill/long.py", False),
    (301, "drill/long.py", True),
    (301, "orders/migrations/0002_long.py", False),
])  # fmt: skip
def test_limit_of_modules(lines, path, broken):
    texts = {"a.py": "def short(): ...", path: "\n" * lines}
    longest = next(row for row in of_files(texts) if row.name == "longest module, lines")
    assert longest.broken == broken


SIX = "one\n  two\n\nthree\nfour\nfive\nsix\n"


def test_duplicates_ignore_indentation_and_blank_lines():
    texts = {"a": f"begin\n{SIX}end", "b": "  one\ntwo\nthree\nfour\n\nfive\nsix"}
    assert files.duplicates(texts) == [files.Block("a", 2, 6), files.Block("b", 1, 6)]


def test_duplicates_longer_than_the_shortest():
    texts = {"a": f"{SIX}seven\nend", "b": f"other\n{SIX}seven\n"}
    assert files.duplicates(texts) == [files.Block("a", 1, 7), files.Block("b", 2, 7)]


def test_duplicates_shorter_than_the_shortest():
    texts = {"a": SIX.replace("six", "seven"), "b": SIX}
    assert files.duplicates(texts) == []


def test_duplicates_within_one_file():
    assert files.duplicates({"a": f"{SIX}between\n{SIX}"}) == [
        files.Block("a", 1, 6),
        files.Block("a", 9, 6),
    ]


def test_sources_under_version_control(tmp_path):
    counted = {
        "app/a.py": "x\n\ny\n",
        "templates/mail.txt": "x\n",
        "static/a.css": "",
        "a.toml": "",
    }
    others = {"tests/a.py": "", "docs/a.md": "", "locale/a.po": "", "docs/templates/a.txt": ""}
    for path, text in {**counted, **others}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    (tmp_path / "app" / "untracked.py").write_text("")
    assert files.sources(tmp_path) == counted
    assert files.sources(tmp_path, tests=True) == {"tests/a.py": ""}
    assert files.lines(counted)["app/a.py"] == 3


def test_migrations_left_out():
    texts = {"app/migrations/0001_initial.py": "", "app/models.py": ""}
    assert list(files.without_migrations(texts)) == ["app/models.py"]


@pytest.mark.parametrize(
    ("row", "broken", "verdict"),
    [
        (Row(name="x", value=12, limit=12), False, "within the limit of 12"),
        (Row(name="x", value=1, limit=0), True, "ABOVE the limit of 0"),
        (Row(name="x", value=900, before=1_000), False, "1,000 before, -100"),
        (Row(name="x", value=7), False, ""),
    ],
)
def test_rows_against_their_limits(row, broken, verdict):
    assert (row.broken, row.verdict) == (broken, verdict)


@pytest.mark.parametrize(
    "text",
    [
        "def let_go(): ...",
        "class WhoeverAsks: ...",
        "# a list, of\n# which one counts",
        "It is no URL.",
        "There is no such URL.",
        "Nobody sees it",
        "then we retry",
        "tell us.",
    ],
)
def test_words_to_avoid(text):
    assert len(words.avoided(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "It is no longer there.",
        "There is no key.",
        "de, en-us",
        "shipped to the US",
        "wait_us = 5",
        "the website is old",
        "is not",
        "outlet goes",
    ],
)
def test_words_that_are_fine(text):
    assert words.avoided(text) == []


def test_pronouns_of_the_shop(tmp_path):
    page = Path("shop", "page.html")
    (tmp_path / "shop").mkdir()
    (tmp_path / page).write_text("We told you.")
    assert [word for _, word in words.in_file(tmp_path, page)] == ["told"]


def test_words_in_a_message_catalogue(tmp_path):
    (tmp_path / "django.po").write_text('msgid "Nobody came."\nmsgstr "whoever"\n')
    assert [word for _, word in words.in_file(tmp_path, Path("django.po"))] == ["Nobody"]
