"""`python -m tests.pictures`: a stack with a past, and every page of it looked at.

Writes all pictures into DATA_DIR/pictures/seen, and those of the documentation into docs/images.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Error, expect

from drill.stack import Stack
from sasweb.stack import folders
from tests.pictures import people
from tests.pictures.look import Eye
from tests.pictures.pages import PAGES, Shown
from tests.support.chromium import launched

DOCS = folders.PROJECT / "docs" / "images"
expect.set_options(timeout=30_000)


def main() -> int:
    """Look at every page; return 1 if something is wrong with one."""
    parser = argparse.ArgumentParser(prog="make pictures", description=__doc__)
    parser.add_argument("--only", default="", help="only pages whose name contains this")
    parser.add_argument("--docs", action="store_true", help="only pages of the documentation")
    parser.add_argument("--again", action="store_true", help="the past of the run before")
    options = parser.parse_args()
    stack = Stack("pictures")
    facts_of_last = stack.folder / "facts.json"
    stack.start(fresh=not options.again)
    try:
        with windows(stack, keep=bool(options.only)) as eyes:
            if options.again:
                facts = json.loads(facts_of_last.read_text())
                people.sign_in(eyes["customer"].page)
            else:
                facts = make_past(stack, eyes)
                facts_of_last.write_text(json.dumps(facts))
            people.enter(eyes, stack)
            facts["partners"] = f"http://localhost:{stack.sandbox_port}"
            look_at_documented(eyes, facts) if options.docs else walk(
                stack, eyes, facts, options.only
            )
            return tell(list(eyes.values()))
    finally:
        stack.stop()


@contextmanager
def windows(stack: Stack, *, keep: bool) -> Iterator[dict[str, Eye]]:
    """Give each of those who look a window; `keep` the pictures of other pages."""
    folder = stack.folder / "seen"
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    with launched() as browser:
        yield {who: Eye.of(browser, f"http://localhost:{stack.port}", folder) for who in PAGES}


def make_past(stack: Stack, eyes: dict[str, Eye]) -> dict[str, str]:
    """Have people do what there will be to see; return where that is."""
    say("Orders are placed, and partners fail …")
    people.sign_up(eyes["customer"].page, stack)
    facts: dict[str, str] = json.loads(stack.python("tests.pictures.past", "scenes"))
    people.operate(eyes["operator"].page, stack, facts)
    stack.sandbox("/faults", {"partner": "payment", "fault": "down"}, "POST")
    return facts | json.loads(stack.python("tests.pictures.past", "late"))


def look_at_documented(eyes: dict[str, Eye], facts: dict[str, str]) -> None:
    """Look at the pages whose pictures the documentation has."""
    for who, pages in PAGES.items():
        for shown in pages:
            if shown.docs:
                visit(eyes[who], shown, facts)


def walk(stack: Stack, eyes: dict[str, Eye], facts: dict[str, str], only: str) -> None:
    """Look at each page as its user; last, at the pages shown without a database."""
    for who, pages in PAGES.items():
        for shown in pages:
            if only in shown.name:
                visit(eyes[who], shown, facts)
    for shown in records(eyes["admin"]) if only in "admin" or "admin" in only else ():
        if only in shown.name:
            visit(eyes["admin"], shown, facts)
    if only in "away":
        stack.manage("stopProcess", "postgres")
        try:
            for who, path in (("guest", "/"), ("operator", "/ops/")):
                visit(eyes[who], Shown(name=f"away-{who}", path=path, refused=True), facts)
        finally:
            stack.manage("startProcess", "postgres")


def records(eye: Eye) -> Iterator[Shown]:
    """Return the admin's lists, and of each the page of one record."""
    eye.page.goto("/admin/")
    lists = eye.page.locator("#content th a").evaluate_all(
        "links => links.map((link) => link.getAttribute('href'))"
    )
    for path in lists:
        name = "admin-" + path.strip("/").split("/", 1)[-1].replace("/", "-")
        yield Shown(name=name, path=path)
        eye.page.goto(path)
        first = eye.page.locator("#result_list tbody th a").first
        if first.count():
            yield Shown(name=f"{name}-one", path=first.get_attribute("href") or path)


def visit(eye: Eye, shown: Shown, facts: dict[str, str]) -> None:
    """Go to a page, do there what is to be done, and look."""
    say(shown.name)
    before = len(eye.problems)
    eye.page.set_viewport_size({"width": 1280, "height": 800})
    try:
        eye.page.goto(shown.path.format(**facts))
        if shown.open:
            shown.open(eye.page)
        eye.page.wait_for_load_state()
        picture = eye.look(shown.name, refused=shown.refused, docs=shown.docs)
    except (Error, AssertionError) as problem:
        eye.problems.append(f"{shown.name}: {problem}")
    else:
        if picture:
            shutil.move(picture, DOCS / picture.name)
    for problem in eye.problems[before:]:
        say(f"!! {problem}")


def tell(eyes: list[Eye]) -> int:
    """Print the number of problems; return 1 if there are any."""
    problems = sum(len(eye.problems) for eye in eyes)
    say(f"{sum(eye.seen for eye in eyes)} looks, {problems} problems; all: {eyes[0].folder}")
    return 1 if problems else 0


def say(text: str) -> None:
    """Print to stderr."""
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
