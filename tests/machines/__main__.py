"""`python -m tests.machines`: tries the README's two commands on machines as newcomers have them.

Needs Linux, and root: it makes users, private homes and other users' files, and removes them again.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from tests.machines.place import Figures, Place, left_over, ordinary_user, shared

STRANGER = 5  # the id of another user ("games" on Debian), who wants to be root
LONG = 120  # characters of a path
PYTHONS = ("3.12", "3.13", "3.14")
QUICK = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit", "tests/simulation"]

HEAD = """\
| machine | ready, s | order, s | MB then | stopped, s | left over |
| --- | --: | --: | --: | --: | --- |"""


class Machines:
    """The machines to try, each in its own folder below `top`, and their results."""

    def __init__(self, top: Path, user: str) -> None:
        self.top, self.user = top, user
        self.before: set[str] = set()  # what lay in shared folders
        self.failed: list[str] = []

    def row(self, name: str, figures: Figures | None = None) -> None:
        """Print a row; what it says was left over has been looked for."""
        numbers = ["", "", "", ""]
        if figures:
            numbers = [
                f"{seconds:.1f}" for seconds in (figures.ready, figures.ordered, figures.stopped)
            ]
            numbers.insert(2, f"{figures.memory:.0f}")
        left = left_over(self.before)
        print("| " + " | ".join([name, *numbers, ", ".join(left) or "nothing"]) + " |", flush=True)
        assert not left, f"left over: {left}"

    @contextmanager
    def trying(self, name: str) -> Iterator[None]:
        """Note what goes wrong, and go on with the next."""
        try:
            yield
        except (Exception, SystemExit):  # noqa: BLE001 - one row of the table
            self.failed.append(name)
            print(f"| {name} | failed | | | | |", flush=True)
            traceback.print_exc()

    @contextmanager
    def place(
        self, name: str, python: str, user: str | None, below: str = "project"
    ) -> Iterator[Place]:
        """Make a clone in a private home of its own; clean and remove it in the end."""
        self.before = shared()
        made = Place(self.top / name, python, user, below)
        try:
            yield made
        finally:
            made.run(*made.make("clean"))
            shutil.rmtree(made.home)

    # --- one after the other -----------------------------------------------------------------
    def root_in_a_private_home(self) -> None:
        """Root's own home is closed to the user that the servers run as; a stranger waits for it."""
        with self.place("root", "python3", None) as place:
            look = "from sasweb.stack import folders; print(folders.outside())"
            own = Path(place.run("python3", "-c", look).stdout.strip())
            with planted(own.name.removeprefix("sas-"), self.top) as precious:
                self.before = shared()
                figures, printed = place.try_it()
                assert precious.read_text() == "precious", "a file of root's was overwritten"
                assert "attackerpass" not in printed, "the stranger's password is in force"
                assert left_over(self.before) == [str(own)], left_over(self.before)
                made = place.run(*place.make("clean"))
                assert made.returncode == 0, made.stdout
                self.row("root, private home; planted folders are not touched", figures)

    def ordinary_user_with_the_systems_python(self) -> None:
        """The system's Python, and every kind of output."""
        with self.place("user", "/usr/bin/python3", self.user) as place:
            for onto in ("terminal", "pipe", "socket", "file"):
                figures, printed = place.try_it(onto)
                shown = "operator / " in printed and "/secrets/" not in printed
                assert shown == (onto == "terminal"), f"passwords are shown to a {onto}: {shown}"
                what = {"terminal": "first start, a terminal", "file": "a file of another user"}
                self.row(f"ordinary user, system's Python; {what.get(onto, f'a {onto}')}", figures)

    def refusals(self) -> None:
        """Folders that another user made are refused, and nothing is written into them."""
        with self.place("refused", "/usr/bin/python3", self.user) as place:
            for plant in (a_folder, a_link):
                with tempfile.TemporaryDirectory(dir="/var/tmp") as open_to_all:
                    Path(open_to_all).chmod(0o1777)
                    folder, target, why = plant(Path(open_to_all))
                    done = place.run(*place.make("run"), DATA_DIR=str(folder))
                    assert done.returncode != 0, "it was used"
                    assert f"{folder} is not used, because {why}" in done.stdout, done.stdout
                    assert not list(target.iterdir()), list(target.iterdir())
                self.row(f"planted by another user: {plant.__name__.replace('_', ' ')}: refused")

    def two_at_once(self) -> None:
        """A second clone of the same user, on other ports, beside the first."""
        with (
            self.place("twin1", "/usr/bin/python3", self.user) as first,
            self.place("twin2", "/usr/bin/python3", self.user) as second,
        ):
            for place in (first, second):
                done = place.run(*place.make(".venv/.run"))
                assert done.returncode == 0, done.stdout
            with first.running() as output:
                first.ready(output)
                figures, _ = second.try_it()
                first.order()
            first.require_no_process()
            self.row("two stacks at once", figures)

    def long_path(self) -> None:
        """Too long for the path of a socket."""
        rest = LONG - len(str(self.top / "long")) - 1
        below = f"{'d' * (rest // 2)}/{'e' * (rest - rest // 2 - 1)}"
        with self.place("long", "/usr/bin/python3", self.user, below) as place:
            assert len(str(place.folder)) == LONG, len(str(place.folder))
            figures, _ = place.try_it()
            self.row(f"a path of {LONG} characters", figures)

    def other_python(self, version: str, python: str) -> None:
        """Another Python that is there: the stack, and the quick tests."""
        with self.place(version, python, None) as place:
            figures, _ = place.try_it()
            done = place.run(*place.make(".venv/.dev"))
            assert done.returncode == 0, done.stdout
            tests = place.run(".venv/bin/python", *QUICK, "--deselect=tests/unit/test_wheels.py")
            assert tests.returncode == 0, tests.stdout[-5000:]
            place.run(*place.make("clean"))
            summary = tests.stdout.strip().splitlines()[-1].strip("= ")
            self.row(f"Python {version}, root; quick tests: {summary}", figures)


def a_folder(top: Path) -> tuple[Path, Path, str]:
    """Plant a folder of a stranger's."""
    folder = top / "data"
    folder.mkdir(0o700)
    os.chown(folder, STRANGER, STRANGER)
    return folder, folder, "it belongs to"


def a_link(top: Path) -> tuple[Path, Path, str]:
    """Plant a link of a stranger's."""
    (top / "target").mkdir(0o777)
    (top / "target").chmod(0o777)
    link = top / "data"
    link.symlink_to(top / "target")
    os.lchown(link, STRANGER, STRANGER)
    return link, top / "target", "it is a link to"


@contextmanager
def planted(digest: str, top: Path) -> Iterator[Path]:
    """Plant what a stranger would: folders of names that can be guessed, with a link in them."""
    precious = top / "precious"
    precious.write_text("precious")
    folders = [Path(f"/var/tmp/sas-{digest}"), Path(f"/tmp/sas-run-{digest}")]
    for folder in folders:
        (folder / "secrets").mkdir(parents=True)
        (folder / "secrets" / "admin_password").write_text("attackerpass")
        (folder / "supervisord.conf").symlink_to(precious)
        for path in (folder, *folder.rglob("*")):
            os.lchown(path, STRANGER, STRANGER)
    try:
        yield precious
    finally:
        for folder in folders:
            shutil.rmtree(folder)


def main() -> int:
    """Try them all; return 1 if one did not do."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="those whose name contains this")
    only = parser.parse_args().only
    if sys.platform != "linux" or os.geteuid() != 0:
        raise SystemExit("This needs Linux, and root: it makes users and private homes.")
    print(HEAD, flush=True)
    with ExitStack() as later:
        top = Path(tempfile.mkdtemp(prefix="sas-machines-", dir="/srv"))
        later.callback(shutil.rmtree, top, ignore_errors=True)
        top.chmod(0o711)
        user = later.enter_context(ordinary_user(top / "user"))
        machines = Machines(top, user)
        tries: dict[str, Callable[[], None]] = {
            "root": machines.root_in_a_private_home,
            "user": machines.ordinary_user_with_the_systems_python,
            "refusals": machines.refusals,
            "long": machines.long_path,
            "two": machines.two_at_once,
            **{
                version: partial(machines.other_python, version, executable)
                for version in PYTHONS
                if (executable := interpreter(version))
            },
        }
        for name, attempt in tries.items():
            if only in name:
                with machines.trying(name):
                    attempt()
    print(
        f"{len(machines.failed)} failed: {', '.join(machines.failed)}"
        if machines.failed
        else "All of them did."
    )
    return 1 if machines.failed else 0


def interpreter(version: str) -> str:
    """Return an interpreter of a version that is there and runs; empty if there is none."""
    name = f"python{version}"
    candidates = [shutil.which(name), *Path.home().glob(f".pyenv/versions/*/bin/{name}")]
    runs = (
        str(candidate)
        for candidate in candidates
        if candidate
        and not subprocess.run(
            [candidate, "--version"], capture_output=True, check=False
        ).returncode
    )
    return next(runs, "")


if __name__ == "__main__":
    sys.exit(main())
