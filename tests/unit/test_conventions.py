"""Rules of the house that linters cannot see."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from orchestration import queues

ROOT = Path(__file__).parents[2]
ENGINE = sorted((ROOT / "orchestration").rglob("*.py"))
WRITERS = ROOT / "orchestration" / "transitions"


def source(path):
    return path.read_text()


def test_the_engine_knows_no_shop():
    words = re.compile(
        r"\b(customers?|carts?|checkout|payments?|shipments?|stock|products?|invoices?)\b",
        re.IGNORECASE,
    )
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in ENGINE
        if "migrations" not in path.parts
        for number, line in enumerate(source(path).splitlines(), 1)
        if words.search(line)
    ]
    assert found == []


def test_only_the_transitions_write_state():
    """Elsewhere nobody updates or saves tasks and steps, by the ORM or by SQL."""
    writes = re.compile(
        r"UPDATE orchestration_(task|step)\b|INSERT INTO orchestration_(task|step)\b"
        r"|(Step|Task)\.objects[^\n]*\.(update|create|bulk_create|bulk_update)\("
    )
    found = [
        str(path.relative_to(ROOT))
        for path in [*ENGINE, *(ROOT / "orders").rglob("*.py")]
        if WRITERS not in path.parents and "migrations" not in path.parts
        if writes.search(source(path))
    ]
    # a status message takes the next number of its task: no state, and under the caller's lock
    assert found == ["orchestration/keeping.py", "orchestration/news.py"]


def test_a_time_is_compared_with_a_clock_that_is_read_once():
    """An index cannot be searched for what may change from row to row."""
    bare = re.compile(r"([<>]=?|BETWEEN|least\(|greatest\()\s*clock_timestamp\(\)")
    found = {
        str(path.relative_to(ROOT))
        for path in [*ENGINE, *(ROOT / "orders").rglob("*.py")]
        if "migrations" not in path.parts and bare.search(source(path))
    }
    # one row, found by its key: after waiting for it the time is another
    assert found == {
        "orchestration/leader.py",
        "orchestration/leading/missed.py",
        "orders/throttle.py",
    }


@pytest.mark.parametrize(
    "path", [*queues.ANSWERS.values(), queues.CALL_AGENT, queues.DELIVER_STATUS]
)
def test_what_a_doorbell_names_can_be_run(path):
    module, name = path.rsplit(".", 1)
    assert callable(getattr(import_module(module), name))


def test_no_module_is_a_bag():
    bags = {"utils.py", "services.py", "tasks.py", "helpers.py", "common.py"}
    product = ("orchestration", "orders", "sandbox", "sasweb")
    found = [path for folder in product for path in (ROOT / folder).rglob("*.py")]
    assert found
    # a command's module is named after the command
    assert [path for path in found if path.name in bags and path.parent.name != "commands"] == []
    long = [path for path in found if len(source(path).splitlines()) > 330]
    assert [path for path in long if "migrations" not in path.parts] == []


def test_requirements_are_pinned_and_say_why():
    for name in ("requirements.txt", "requirements-dev.txt"):
        lines = (ROOT / name).read_text().splitlines()
        wanted = [line for line in lines if line and not line.startswith(("#", "-r"))]
        assert wanted
        for line in wanted:
            assert re.fullmatch(r"[a-z0-9-]+==[\w.]+\s+# .{10,}", line), line
