"""Conventions of this project that linters do not check."""

import ast
import re
import subprocess
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from orchestration.messaging import queues
from tests import order
from tests.house import words

ROOT = Path(__file__).parents[2]
ENGINE = sorted((ROOT / "orchestration").rglob("*.py"))
WORDS = {Path("tests/house/words.py"), Path("tests/house/shape.py")}  # they list them
WRITERS = ROOT / "orchestration" / "transitions"


def source(path):
    return path.read_text()


def test_engine_imports_no_shop():
    words = re.compile(
        r"\b(customers?|carts?|checkout|payments?|shipments?|stock|products?|invoices?)\b",
        re.IGNORECASE,
    )
    broken = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in ENGINE
        if "migrations" not in path.parts
        for number, line in enumerate(source(path).splitlines(), 1)
        if words.search(line)
    ]
    assert broken == []


SHOP = [path for path in (ROOT / "orders").rglob("*.py") if "migrations" not in path.parts]


def imported(tree):
    """Yield each module that is imported, inside functions and for types too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "orchestration":
            yield from (f"orchestration.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module


def test_shop_imports_only_the_engines_api():
    broken = {
        (str(path.relative_to(ROOT)), name)
        for path in SHOP
        for name in imported(ast.parse(source(path)))
        if name.split(".")[0] == "orchestration" and name != "orchestration.api"
    }
    assert broken == set()


def test_shop_names_no_table_or_module_of_the_engine():
    """In SQL, or for an import by name."""
    inside = re.compile(r"\borchestration(_[a-z]+\b|\.(?!api\b)[a-z]+)")
    broken = {
        (str(path.relative_to(ROOT)), text[0])
        for path in SHOP
        for node in ast.walk(ast.parse(source(path)))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for text in inside.finditer(node.value)
    }
    assert broken == set()


def test_state_is_written_only_by_the_transitions():
    """No other module updates or saves tasks and steps, by the ORM or by SQL."""
    writes = re.compile(
        r"UPDATE orchestration_(task|step)\b|INSERT INTO orchestration_(task|step)\b"
        r"|(Step|Task)\.objects[^\n]*\.(update|create|bulk_create|bulk_update)\("
    )
    writers = sorted(
        str(path.relative_to(ROOT))
        for path in [*ENGINE, *(ROOT / "orders").rglob("*.py")]
        if WRITERS not in path.parents and "migrations" not in path.parts
        if writes.search(source(path))
    )
    # a status message takes the next number of its task: no state, and under the caller's lock
    assert writers == [
        "orchestration/applications/outbox.py",
        "orchestration/applications/owner_updates.py",
    ]


def test_deadlines_are_compared_with_one_reading_of_the_clock():
    """An index cannot be searched for what may change from row to row."""
    bare = re.compile(r"([<>]=?|BETWEEN|least\(|greatest\()\s*clock_timestamp\(\)")
    bare_reads = {
        str(path.relative_to(ROOT))
        for path in [*ENGINE, *(ROOT / "orders").rglob("*.py")]
        if "migrations" not in path.parts and bare.search(source(path))
    }
    # one row, found by its key: after waiting for it the time is another
    assert bare_reads == {
        "orchestration/cluster/leader_election.py",
        "orchestration/workers/leader_monitor.py",
        "orders/rate_limit.py",
    }


@pytest.mark.parametrize(
    "path", [*queues.HANDLERS.values(), queues.CALL_AGENT, queues.DELIVER_STATUS]
)
def test_doorbell_jobs_can_be_imported(path):
    module, name = path.rsplit(".", 1)
    assert callable(getattr(import_module(module), name))


def test_tests_share_support_code_and_not_tests():
    """What two modules of tests need is in tests/support."""
    modules = sorted((ROOT / "tests").rglob("*.py"))
    assert modules
    shared = re.compile(r"^ *(?:from|import) tests\.[\w.]*\btest_", re.MULTILINE)
    assert [path for path in modules if shared.search(source(path))] == []


def test_modules_are_not_named_utils():
    bags = {"utils.py", "services.py", "tasks.py", "helpers.py", "common.py"}
    product = ("orchestration", "orders", "sandbox", "sasweb")
    paths = [path for folder in product for path in (ROOT / folder).rglob("*.py")]
    assert paths
    # a command's module is named after the command
    assert [path for path in paths if path.name in bags and path.parent.name != "commands"] == []


def test_requirements_are_pinned_with_a_reason():
    for name in ("requirements.txt", "requirements-demo.txt", "requirements-dev.txt"):
        lines = (ROOT / name).read_text().splitlines()
        requirements = [line for line in lines if line and not line.startswith(("#", "-r"))]
        assert requirements
        for line in requirements:
            assert re.fullmatch(r"[a-z0-9-]+==[\w.]+\s+# .{10,}", line), line


def test_words_to_avoid():
    """Plain English in names, docstrings, comments, pages and messages: tests/house/words.py."""
    suffixes = {".css", ".html", ".js", ".md", ".po", ".py", ".toml", ".txt", ".yaml"}
    listed = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    broken = [
        f"{path}:{line}: {word}"
        for path in map(Path, listed)
        if path.suffix in suffixes and (ROOT / path).is_file()
        if path not in {*WORDS, Path("tests/unit/test_house.py")}  # which name them
        for line, word in words.in_file(ROOT, path)
    ]
    assert broken == []


def test_no_label_is_the_name_of_a_class():
    """People read labels: a rename of a class must not reach them."""
    trees = {path: ast.parse(source(path)) for path in (*ENGINE, *SHOP)}
    nodes = [(path, node) for path, tree in trees.items() for node in ast.walk(tree)]
    classes = {node.name for _, node in nodes if isinstance(node, ast.ClassDef)}
    classes.remove("ProcessState")  # the pattern's name of a column
    compound = {name for name in classes if re.search("[a-z][A-Z]", name)}
    labels = {"label", "help_text", "description", "verbose_name", "verbose_name_plural"}
    broken = [
        f"{path.relative_to(ROOT)}:{node.value.lineno}: {node.value.value}"
        for path, node in nodes
        if isinstance(node, ast.keyword) and node.arg in labels
        if isinstance(node.value, ast.Constant)
        if compound & set(re.findall(r"\w+", str(node.value.value)))
    ]
    assert broken == []


def test_commit_hooks_run_each_check_of_make():
    """A hook calls a target of `make check`, so the two cannot differ in their commands."""
    makefile = (ROOT / "Makefile").read_text()
    checks = re.search(r"^CHECKS := (.+)$", makefile, re.MULTILINE)[1].split()
    [local] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert local["repo"] == "local"
    assert [hook["id"] for hook in local["hooks"]] == checks
    for hook in local["hooks"]:
        assert re.search(rf"make --silent {hook['id']}( CHANGED=|$)", hook["entry"])
        assert re.search(rf"^{hook['id']}:\n\t\S", makefile, re.MULTILINE)
        assert ("CHANGED" in hook["entry"]) == hook.get("pass_filenames", True)


def test_files_of_the_order_of_tests_exist():
    assert [file for file in order.PLACES if not (ROOT / file).is_file()] == []
