"""The commands of the README and the tour, run right after "Ready.", succeed."""

import re
import subprocess
from pathlib import Path

import pytest

from drill.stack import Stack
from drill.verdict import audited
from sasweb.stack import folders
from tests.support.markdown import blocks
from tests.support.reader import install_app, project_copy

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]

README = (folders.PROJECT / "README.md").read_text()
TOUR = (folders.PROJECT / "docs" / "use" / "tour.md").read_text()


def blocks_of(heading, language):
    """Return the code blocks of a language below a heading of the README."""
    section = README.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return blocks(section, language)


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    """A clone with the workflow of the README, just ready."""
    clone = project_copy(tmp_path_factory.mktemp("reader") / "project")
    (clone / "greetings").mkdir()
    (clone / "greetings" / "__init__.py").touch()
    (workflow,) = blocks_of("Your own workflow", "python")
    (clone / "greetings" / "workflow.py").write_text(workflow)
    install_app(clone, "greetings")
    running = Stack("reader", demo=True)
    running.project = clone
    with audited(running):
        yield running


def typed(stack, block):
    """Run a block in a shell, with this stack's ports; return its output."""
    for port, own in ((8000, stack.port), (8900, stack.sandbox_port)):
        block = block.replace(f"localhost:{port}", f"localhost:{own}")
    token = (stack.folder / "secrets" / "example_token").read_text()
    block = block.replace("<token>", f"sas_{token}")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block], cwd=stack.project, env=stack.inside(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{block}\n{done.stdout}"
    assert "Traceback" not in done.stdout, done.stdout
    return done.stdout


def test_readme_workflow_runs_on_a_stack_just_ready(stack):
    (block,) = blocks_of("Your own workflow", "sh")
    assert '"state": "processed"' in typed(stack, block)


def test_tour_runs_on_a_stack_just_ready(stack):
    *faults, program = blocks(TOUR, "sh")
    output = typed(stack, program)
    assert "completed" in output, output
    assert len(faults) == 3
    assert faults[:2] == blocks_of("Five minutes with it", "sh")  # the README has the first of them
    for block in faults:
        assert "fault" in typed(stack, block)
        typed(stack, "curl -sS -X DELETE localhost:8900/faults")


def test_commands_that_the_readme_names_exist(stack):
    targets = set(re.findall(r"`make ([a-z-]+)", README))
    makefile = Path(folders.PROJECT / "Makefile").read_text()
    assert {
        name for name in targets if not re.search(rf"^{name}:", makefile, re.MULTILINE)
    } == set()
    assert "went through all parts" in typed(stack, ".venv/bin/python manage.py canary")
