"""The engine as a wheel, in a Django project of its own, as docs/use/your-project.md says."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Collection
from importlib.metadata import version
from pathlib import Path

import psycopg2
import pytest
from django.core.management import call_command
from django.db import connection
from packaging.requirements import Requirement
from psycopg2.extensions import ISOLATION_LEVEL_AUTOCOMMIT

from sasweb.stack.folders import PROJECT
from tests.support.markdown import blocks

PAGE = (PROJECT / "docs" / "use" / "your-project.md").read_text()
DATABASE = "a_project_of_its_own"
PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text())

EXTRAS = PYPROJECT["project"]["optional-dependencies"]
ABOVE = ("console", "assurance")  # the applications that the engine runs without
OF_TRACING = {"opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"}  # `opentelemetry.…`

COMMANDS = """
import json, os, sys
from django.core.management import execute_from_command_line
os.environ["DJANGO_SETTINGS_MODULE"] = "mysite.settings"
for command in json.loads(sys.argv[1]):
    execute_from_command_line(["manage.py", *command])
"""

LOOK = """
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.test import Client
import orchestration, re
assert orchestration.__file__.startswith(folder), orchestration.__file__
User.objects.create_superuser("ann", password="p")
stranger, ann = Client(SERVER_NAME="localhost"), Client(SERVER_NAME="localhost")
assert stranger.get("/ops/").headers["Location"].startswith("/login/?next="), "a stranger logs in"
assert b'name="password"' in stranger.get("/login/").content
assert ann.post("/login/", {"username": "ann", "password": "p"}).headers["Location"] == "/ops/"
for page in ("", "incidents/", "tasks/", "operations/", "dead-letters/", "agents/", "system/", "audit/",
             "workflows/", "runbook/", "schedules/"):
    answer = ann.get(f"/ops/{page}")
    assert answer.status_code == 200, (page, answer.status_code)
    for file in re.findall(r'(?:href|src)="/static/([^"]+)"', answer.content.decode()):
        assert finders.find(file), file
assert ann.get("/metrics").status_code == 200
for model in ("policy", "application", "task"):
    assert ann.get(f"/admin/orchestration/{model}/").status_code == 200, model
assert ann.get("/admin/orchestration/policy/trips_partner/change/").status_code == 200
assert ann.post("/logout/").headers["Location"] == "/login/"
print("looked")
"""


# In a process that must not have some packages: they cannot be imported, though they may be installed.
MISSING = """
import sys
sys.modules.update(dict.fromkeys({packages!r}))
"""

LOADED = """
import sys
from django.apps import apps
names = {app.name for app in apps.get_app_configs() if app.name.startswith("orchestration")}
assert names == {"orchestration"}, names
above = ("orchestration.console", "orchestration.assurance")
assert not [name for name in sys.modules if name.startswith(above)]
from orchestration.alerting import runbook
assert runbook.url("overdue/w") == "docs/run/runbook.md#overdue"
from orchestration.models import Lease
assert Lease.objects.filter(swept_at__isnull=False).count() == 2, list(Lease.objects.values())
print("engine alone")
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The wheel, built and installed in a folder of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(build, cwd=PROJECT, check=True, capture_output=True)
    (wheel,) = folder.glob("orchestration-*.whl")
    install = [*("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile")]
    subprocess.run(
        [sys.executable, *install, "--target", folder / "site", wheel],
        check=True, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )  # fmt: skip
    return folder / "site"


@pytest.fixture
def engine(site, tmp_path):
    """The wheel's files without the other two applications, and without what only they need."""
    folder = tmp_path / "engine"
    absent = shutil.ignore_patterns(*ABOVE)
    shutil.copytree(site / "orchestration", folder / "orchestration", ignore=absent)
    (folder / "sitecustomize.py").write_text(MISSING.format(packages=of_extras(*ABOVE, "metrics")))
    return folder


@pytest.fixture
def database():
    """A database for a project; yields how to reach it."""
    server = {
        name: str(value)
        for name, value in connection.get_connection_params().items()
        if name in {"host", "port", "user", "password"}
    }
    with psycopg2.connect(**server, dbname="postgres") as session:
        pass
    session.set_isolation_level(ISOLATION_LEVEL_AUTOCOMMIT)
    cursor = session.cursor()
    cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
    cursor.execute(f"CREATE DATABASE {DATABASE}")
    yield {"NAME": DATABASE, "HOST": server.get("host", ""), "USER": server.get("user", "")}
    cursor.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
    session.close()


def project(folder, site, database, redis, **changed):
    """Make a project as `startproject` makes it, with what the page says."""
    run = Project(folder, site)
    call_command("startproject", "mysite", folder)
    of_settings, of_urls, of_log, _duty = blocks(PAGE, "python")
    for line, other in changed.items():
        of_settings = re.sub(rf"^{line} .*$", other, of_settings, flags=re.MULTILINE)
    run.append("mysite/settings.py", of_settings)
    run.append("mysite/settings.py", of_log)
    run.append("mysite/settings.py", f"DATABASES['default'] |= {database!r}")
    run.append("mysite/settings.py", f"REDIS_URL = {redis + '?db=5'!r}")
    if not changed:
        run.append("mysite/urls.py", of_urls)
    return run


class Project:
    def __init__(self, folder: Path, site: Path) -> None:
        self.folder = folder
        foreign = ("DJANGO_", "SECRET_KEY", "DATA_DIR", "PYTEST")
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(foreign)
        } | {"PYTHONPATH": str(site), "DATABASE_PASSWORD": ""}

    def append(self, name: str, text: str) -> None:
        with (self.folder / name).open("a") as file:
            file.write(f"\n{text}\n")

    def manage(self, *commands: list[str]) -> str:
        """Run commands of manage.py in one process; return what they print."""
        done = subprocess.run(
            [sys.executable, "-c", COMMANDS, json.dumps(commands)],
            cwd=self.folder, env=self.environment, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return done.stdout

    def start(self, *arguments: str) -> subprocess.Popen:
        return subprocess.Popen([sys.executable, *arguments], cwd=self.folder, env=self.environment)


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


@pytest.mark.django_db
@pytest.mark.timeout(300)
def test_all_three_run_in_a_project_of_its_own(tmp_path, site, database, settings):
    run = project(tmp_path, site, database, settings.REDIS_URL)
    seen = run_trips(run, ["shell", "-v", "0", "-c", f"folder = {str(site)!r}\n{LOOK}"])
    assert seen.endswith("looked\n")
    assert re.search(r"Ran 2 tests in .*\n\nOK", run.manage(["test", "trips"]))


@pytest.mark.django_db
@pytest.mark.timeout(300)
def test_engine_runs_without_the_other_two(tmp_path, engine, database, settings):
    alone = {"INSTALLED_APPS": "INSTALLED_APPS += engine.ENGINE", "MIDDLEWARE": ""}
    (folder := tmp_path / "site").mkdir()
    run = project(folder, engine, database, settings.REDIS_URL, **alone)
    run_trips(run, ["deadletters", "list"], ["tasks", "alerts"])
    run.manage(["supervisor", "--once"])
    run.manage(["housekeeper", "--once"])
    assert run.manage(["shell", "-v", "0", "-c", LOADED]).endswith("engine alone\n")


def run_trips(project, *commands):
    """Make an example workflow, run a task of it, and then commands; return what these print."""
    printed = project.manage(["startworkflow", "trips"], ["check"])
    assert 'Add "trips" to INSTALLED_APPS' in printed
    assert "orchestration.W001" in printed
    port = free_port()
    project.append("mysite/settings.py", 'INSTALLED_APPS += ["trips"]')
    project.append("mysite/settings.py", f'TRIPS_URL = "http://127.0.0.1:{port}"')
    (submit,) = re.findall(r"shell -v 0 -c '(.+)'", printed)
    made = project.manage(
        ["migrate", "--verbosity", "0"],
        ["makemigrations", "--check", "--dry-run"],
        ["shell", "-v", "0", "-c", submit],
    )
    assert "No changes detected" in made
    started = [
        project.start("-m", "trips.fake_partner", port),
        project.start("manage.py", "work", "--all"),
    ]
    try:
        seen = project.manage(["tasks", "wait", "trips", "1"], *commands)
    finally:
        for process in started:
            process.terminate()
            process.wait(20)
    assert '"order": "processed"' in seen
    return seen


def test_wheel_has_the_engine_alone(site):
    (information,) = site.glob("orchestration-*.dist-info")
    assert {path.name for path in site.iterdir()} == {"orchestration", information.name}
    engine = site / "orchestration"
    assert (engine / "py.typed").exists()
    assert not list(engine.rglob("*shop*"))
    assert (information / "licenses" / "LICENSE").exists()


def imported(room: str, but: Collection[str] = ()) -> set[str]:
    """Return the packages that the modules of a folder import, without those of some of its rooms."""
    line = re.compile(r"^\s*(?:import|from) ([a-zA-Z0-9_]+)", re.MULTILINE)
    folder = PROJECT / room
    files = (file for file in folder.rglob("*.py") if file.relative_to(folder).parts[0] not in but)
    names = {name for file in files for name in line.findall(file.read_text())}
    return names - sys.stdlib_module_names - {"orchestration"}


def of_extras(*extras: str) -> set[str]:
    """Return the packages, as they are imported, that only these extras bring."""
    names = {Requirement(text).name for extra in extras for text in EXTRAS[extra]}
    return {package for package, name in DISTRIBUTIONS.items() if name in names}


DISTRIBUTIONS = {
    "aiohttp": "aiohttp", "asgiref": "django", "django": "django", "django_htmx": "django-htmx",
    "django_rq": "django-rq", "django_tasks": "django-tasks", "pytest": "pytest-django",
    "cronsim": "cronsim", "jsonschema": "jsonschema", "markdown_it": "markdown-it-py", "msgspec": "msgspec",
    "opentelemetry": "opentelemetry-api", "prometheus_client": "prometheus-client",
    "psycopg2": "psycopg2-binary", "redis": "redis", "rq": "rq",
    "simple_history": "django-simple-history", "uvloop": "uvloop",
}  # fmt: skip


NEEDED = {Requirement(text).name for text in PYPROJECT["project"]["dependencies"]}


@pytest.mark.parametrize(
    ("room", "but", "extras"),
    [
        ("orchestration", ABOVE, ("tasks", "testing", "tracing")),
        ("orchestration/console", (), ("console", "metrics")),
        ("orchestration/assurance", (), ("assurance",)),
    ],
)
def test_each_application_imports_what_it_declares(room, but, extras):
    names = {DISTRIBUTIONS[package] for package in imported(room, but)}
    optional = {Requirement(text).name for extra in extras for text in EXTRAS[extra]}
    assert names <= NEEDED | optional
    assert optional - names <= OF_TRACING  # one that is not imported is not needed


def test_no_package_is_known_that_is_not_imported():
    assert set(DISTRIBUTIONS) == imported("orchestration")


@pytest.mark.parametrize("text", PYPROJECT["project"]["dependencies"])
def test_tested_version_is_within_what_the_wheel_takes(text):
    requirement = Requirement(text)
    assert requirement.specifier.contains(version(requirement.name))
