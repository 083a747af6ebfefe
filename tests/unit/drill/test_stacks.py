"""Every stack has two of each process, and what runs on it ends with the audit."""

import re

import pytest

from drill.process_names import COPIES, LEADERS, WORKERS, processes_named
from orchestration import registry
from sasweb.stack import folders, processes

# Files that start a stack and do not end with `audited`, and why.
OTHERWISE = {
    "drill/__main__.py": "each verdict audits",
    "drill/alerts/__main__.py": "its scenes plant violations, for the alert about them",
    "tests/stack/test_drill_red.py": "its drills remove guards, and assert what the audit finds then",
    "tests/stack/test_starting.py": "its stack ends by SIGKILL, right after an audit",
    "tests/pictures/__main__.py": "its past is written by SQL, and has violations to look at",
    "tests/journeys/own_workflow.py": "it stops and starts its stack, and audits before the last stop",
}
STARTED = re.compile(r"(\bStack|\bReplicated)\(\s*\"|KINDS\[\w+\]\(")


def starting():
    """Return the files of drills and tests that start stacks."""
    files = [*folders.PROJECT.glob("drill/**/*.py"), *folders.PROJECT.glob("tests/**/*.py")]
    return {
        str(file.relative_to(folders.PROJECT)): file.read_text()
        for file in files
        if file.name != "test_stacks.py" and STARTED.search(file.read_text())
    }


def test_stacks_end_with_the_audit():
    sources = starting()
    assert len(sources) > len(OTHERWISE)
    assert {name for name, text in sources.items() if "audited(" not in text} == OTHERWISE.keys()


def test_stacks_have_two_of_each_process(monkeypatch):
    monkeypatch.setenv(processes.COPIES, str(COPIES))
    options = processes.Options(
        host="127.0.0.1", port=1, sandbox_port=2, demo=False, local=True, shown=False
    )
    for elsewhere in ("DATABASE_URL", "REDIS_URL"):
        monkeypatch.setenv(elsewhere, "elsewhere")
    monkeypatch.delitem(registry.agents, "greeter")  # of the tests' settings
    names = {program.name for program in processes.programs(options)}
    assert names - {"setup", "sandbox", "web"} == {*WORKERS, *LEADERS}


@pytest.mark.parametrize(
    ("name", "processes"),
    [
        ("work-payment", ("work-payment-1", "work-payment-2")),
        ("work-status.shop", ("work-status.shop-1", "work-status.shop-2")),
        ("work-payment-2", ("work-payment-2",)),
        ("housekeeper", ("housekeeper-1", "housekeeper-2")),
        ("web", ("web",)),
    ],
)
def test_processes_of_a_name(name, processes):
    assert processes_named(name) == processes


def test_demo_runs_one_of_most_processes(monkeypatch):
    monkeypatch.delenv(processes.COPIES, raising=False)
    assert processes.workers("audit") == ["work-audit"]
    assert processes.workers("scheduler") == ["work-scheduler-1", "work-scheduler-2"]
