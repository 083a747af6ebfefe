"""The journey of a developer: from `startworkflow` to a first undone task, the engine untouched."""

import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from drill.process import Process, free_port
from drill.stack import Stack
from drill.verdict import audit
from tests.journeys.hand import Journey
from tests.support.reader import install_app, project_copy

NAME = "trips"
WAIT = f"python manage.py tasks wait {NAME} 1"
SUBMIT = (
    f'from orchestration.api import submit; submit("{NAME}", reference="1", data={{"name": "Ada"}})'
)


def own_workflow() -> Journey:
    """Make a workflow, test it, run it beside the shop, and have its first task undone."""
    journey = Journey(name="A workflow of one's own", goal="its first task is undone")
    with TemporaryDirectory() as folder:
        project = project_copy(Path(folder) / "project")
        stack = Stack("own-workflow")
        stack.project = project
        port = free_port()
        command = [sys.executable, "-m", f"{NAME}.fake_partner", str(port)]
        began = time.monotonic()
        _make_run(stack, journey, fresh=True)
        try:
            _typed(stack, journey, "python manage.py startworkflow trips")
            install_app(project, NAME)  # an editor, which counts as a command
            journey.commands += 1
            settings = project / "sasweb" / "settings.py"
            settings.write_text(f'{settings.read_text()}\nTRIPS_URL = "http://127.0.0.1:{port}"\n')
            partner = Process(command, project / "partner.log", cwd=project)
            journey.commands += 1
        finally:
            stack.stop()
        _make_run(stack, journey, fresh=False)
        try:
            _typed(stack, journey, f"python manage.py shell -v 0 -c '{SUBMIT}'")
            assert json.loads(_typed(stack, journey, WAIT))["state"] == "processed"
            tasks = json.loads(_typed(stack, journey, "python manage.py tasks list"))
            (task,) = [row["id"] for row in tasks if row["workflow"] == NAME]
            undo = f"python manage.py tasks undo {task} --reason 'to see it undone'"
            _typed(stack, journey, undo)
            assert json.loads(_typed(stack, journey, WAIT))["state"] == "undone"
            journey.seconds = time.monotonic() - began
            assert audit(stack, ()) == []
        finally:
            stack.stop()
            partner.end()
        journey.notes.append("Adding the application to INSTALLED_APPS counts as a command.")
    return journey


def _make_run(stack: Stack, journey: Journey, *, fresh: bool) -> None:
    """Start everything, as `make run` does."""
    journey.commands += 1
    stack.start(fresh=fresh)


def _typed(stack: Stack, journey: Journey, line: str) -> str:
    """Type a line into a shell; return what it prints."""
    journey.commands += 1
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"PATH=.venv/bin:$PATH; {line}"],
        cwd=stack.project, env=stack.inside(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout
