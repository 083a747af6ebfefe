"""`make pattern`: run the tests of each requirement of the pattern, and print the results."""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from sasweb.stack import folders

from .table import ROOT, Mutation, Requirement, document, mutations, requirements

FAILED = re.compile(r"^\d+ failed", re.MULTILINE)  # in pytest's last line: not only errors
LONGEST = 300  # seconds for one mutation's tests


class Recorder:
    """Notes how each test ended."""

    def __init__(self) -> None:
        self.ends: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the call's end, and any failure before or after it."""
        if report.when == "call" or report.outcome != "passed":
            self.ends[report.nodeid] = report.outcome

    def of(self, test: str) -> list[str]:
        """Return the ends of a test, one for each set of its parameters."""
        return [end for node, end in self.ends.items() if node.partition("[")[0] == test]


def main() -> int:
    """Run the command; return 0 only if every row is met, or every mutation found."""
    parser = argparse.ArgumentParser(prog="python -m tests.pattern", description=__doc__)
    parser.add_argument("requirement", nargs="*", help="ids, such as P9; default: all")
    parser.add_argument(
        "--mutations", action="store_true", help="break a line of each: its test fails?"
    )
    parser.add_argument("--document", action="store_true", help="only write the table into docs")
    options = parser.parse_args()
    if options.document:
        document()
        return 0
    if options.mutations:
        return check_mutations(
            [mutation for mutation in mutations() if _chosen(mutation.requirement, options)]
        )
    return check_requirements([row for row in requirements() if _chosen(row.id, options)])


def _chosen(name: str, options: argparse.Namespace) -> bool:
    return not options.requirement or name in options.requirement


def check_requirements(rows: Sequence[Requirement]) -> int:
    """Run the tests of the rows, and print a line for each."""
    recorder = Recorder()
    tests = dict.fromkeys(test for row in rows for test in row.tests)
    pytest.main(["-q", "-p", "no:cacheprovider", "--no-header", *tests], plugins=[recorder])
    print(f"\n{'':<5}{'requirement':<52}{'tests':>7}  verdict")
    bad = 0
    for row in rows:
        ends = [end for test in row.tests for end in recorder.of(test)]
        verdict = _verdict(row, ends, recorder)
        bad += verdict.startswith("NOT MET")
        print(f"{row.id:<5}{row.title:<52}{len(ends):>7}  {verdict}")
    deviating = sum(bool(row.deviates) for row in rows)
    print(
        f"\n{len(rows)} requirements: {len(rows) - bad} met, {deviating} of them with a deviation"
    )
    return bool(bad)


def _verdict(row: Requirement, ends: Sequence[str], recorder: Recorder) -> str:
    if unrun := [test for test in row.tests if not recorder.of(test)]:
        return f"NOT MET: not run: {', '.join(unrun)}"
    if set(ends) != {"passed"}:
        return f"NOT MET: {sum(end != 'passed' for end in ends)} did not pass"
    return (
        f"full, but deviates: docs/understand/decisions/{row.deviates}.md"
        if row.deviates
        else "full"
    )


def check_mutations(chosen: Sequence[Mutation]) -> int:
    """Break one line after the other in a copy of the project; its test must fail for it."""
    copy = _copy()
    clean = _run(copy, dict.fromkeys(mutation.test for mutation in chosen))
    if clean.returncode:
        print(clean.stdout[-5000:])
        print("Without any mutation the tests must pass.")
        return 1
    survived = 0
    for mutation in chosen:
        target = copy / mutation.file
        text = target.read_text()
        target.write_text(mutation.applied(text))
        failure = FAILED.search(_run(copy, [mutation.test]).stdout)
        target.write_text(text)
        survived += failure is None
        outcome = "found" if failure else "SURVIVED"
        print(f"{mutation.requirement:<5}{outcome:<9} {mutation.file}: {mutation.line}", flush=True)
    met = len({mutation.requirement for mutation in chosen})
    print(f"\n{len(chosen)} mutations of {met} requirements: {survived} survived")
    return bool(survived)


def _copy() -> Path:
    """Return a copy of what the project's version control has, with a data folder of its own."""
    top = folders.make(folders.make_data_dir() / "mutations", folders.PASSABLE)
    copy = top / "project"
    shutil.rmtree(copy, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    return copy


def _run(copy: Path, tests: Iterable[str]) -> "subprocess.CompletedProcess[str]":
    environment = {
        name: value for name, value in os.environ.items() if name not in {"DATA_DIR", "PYTHONPATH"}
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests],
        cwd=copy, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
