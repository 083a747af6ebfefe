"""The documentation's links, anchors, and names of files and functions are right."""

import ast
import inspect
import re
import subprocess

import pytest

from orchestration import api
from sasweb.stack.folders import PROJECT
from tests.pattern.table import exists
from tests.support.markdown import BLOCK, anchors

LINK = re.compile(r"\]\(([^)\s]+)\)|<a href=\"([^\"]+)\"|<img src=\"([^\"]+)\"")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def tracked(*patterns):
    """Return the files that git knows or would add, by their paths from the project's root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=PROJECT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return sorted(name for name in set(listed.stdout.split()) if (PROJECT / name).exists())


PAGES = tracked("*.md")


def links(name):
    """Return the relative links of a page."""
    targets = ("".join(link) for link in LINK.findall(CODE.sub("", (PROJECT / name).read_text())))
    return [link for link in targets if not re.match(r"[a-z]+:|/", link)]


@pytest.mark.parametrize("name", PAGES)
def test_links_of_a_page_have_targets(name):
    page = PROJECT / name
    broken = []
    for link in links(name):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


NAMED = re.compile(r"`((?:[\w.-]+/)+[\w.-]*(?:::[\w.]+)?)`")
CODE_PAGES = [name for name in PAGES if name.startswith("docs/") or name == "README.md"]
MAPS = {"docs/understand/one-order.md", "docs/understand/where-does-my-code-go.md"}
GENERATED = {"docs/results/house.md"}  # it names what was measured then


@pytest.mark.parametrize("name", sorted({*CODE_PAGES} - GENERATED))
def test_files_and_functions_that_a_page_names_exist(name):
    text = (PROJECT / name).read_text()
    named = set(NAMED.findall(text))
    roots = {path.split("/")[0] for path in tracked()}
    files = {path for path in named if path.split("/")[0] in roots}
    assert len(files) > 20 or name not in MAPS
    missing = [
        path for path in sorted(files) if not (exists(_place(path)) or (PROJECT / path).exists())
    ]
    assert missing == []
    rows = re.findall(r"^\| \*\*.+?\*\*[^|]*\| ([^|]+)", text, re.MULTILINE)
    assert name not in MAPS or [row for row in rows if not NAMED.search(row)] == []


def _place(name):
    """Return "path::Class.member" as the pattern's table writes it: "path::Class::member"."""
    path, _, function = name.partition("::")
    return "::".join([path, *function.split(".")]) if function else path


FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
FROM_API = re.compile(r"from orchestration\.api import (?:\(([^)]*)\)|([\w, ]+))")
API_PAGES = [name for name in PAGES if "orchestration.api import" in (PROJECT / name).read_text()]


def imported_from_api(text):
    """Return the names that the code blocks of a page import from the interface."""
    lists = [block or line for block, line in FROM_API.findall("\n".join(FENCED.findall(text)))]
    parts = [part for listed in lists for part in re.sub("#.*", "", listed).split(",")]
    return {part.split()[0] for part in parts if part.strip()}


def test_names_of_an_import_are_found_on_one_line_and_in_parentheses():
    page = """
```python
from orchestration.api import Step, undo as back
from orchestration.api import (
    Workflow,  # of steps, and more
    resubmit,
)
```
"""
    assert imported_from_api(page) == {"Step", "undo", "Workflow", "resubmit"}


@pytest.mark.parametrize("name", API_PAGES)
def test_names_that_a_page_imports_of_the_interface_exist(name):
    named = imported_from_api((PROJECT / name).read_text())
    assert named
    assert sorted(named - {*api.__all__}) == []


def test_calls_of_requests_have_the_arguments_of_the_interface():
    blocks = BLOCK.findall((PROJECT / "docs/use/workflows.md").read_text())
    (block,) = [code for kind, code in blocks if kind == "python" and "request_undo(" in code]
    calls = [node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Call)]
    named = {call.func.id: call for call in calls if hasattr(api, call.func.id)}
    assert {"request_undo", "request_resubmit", "Amendment"} <= named.keys()
    for function, call in named.items():
        arguments = {keyword.arg: keyword.value for keyword in call.keywords}
        inspect.signature(getattr(api, function)).bind(*call.args, **arguments)


def test_table_of_the_rooms_has_the_layers_that_are_checked():
    contract = (PROJECT / ".importlinter").read_text().split("layers =\n")[1].split("\n\n")[0]
    checked = [re.findall(r"\w+", line) for line in contract.splitlines()]
    page = (PROJECT / "docs/understand/architecture.md").read_text()
    listed = re.findall(r"^\| \d \| [^|]+ \| ([\w, ]+) \|$", page, re.MULTILINE)
    assert [rooms.split(", ") for rooms in listed] == checked


def test_glossary_is_sorted():
    page = (PROJECT / "docs/understand/glossary.md").read_text()
    words = re.findall(r"^\| \*\*(.+?)\*\* \|", page, re.MULTILINE)
    assert len(words) > 60
    assert words == sorted(words, key=str.casefold)


def test_index_of_decisions_has_their_titles():
    folder = PROJECT / "docs/understand/decisions"
    titles = [
        f"{int(page.name[:4])}. [{page.read_text().splitlines()[0][8:]}]({page.name})"
        for page in sorted(folder.glob("0*.md"))
    ]
    index = (folder / "README.md").read_text().splitlines()
    assert [line for line in index if line[:1].isdigit()] == titles


@pytest.mark.parametrize("name", ["README.md", "docs/use/tour.md"])
def test_counts_that_a_page_quotes_from_the_log_are_a_sweeps(name):
    quoted = re.findall(r"`\d+ ([a-z ]+)`", (PROJECT / name).read_text())
    assert quoted
    modules = ("supervisor.py", "supervision/failures.py")
    sources = [(PROJECT / "orchestration" / name).read_text() for name in modules]
    assert set(quoted) <= set(re.findall(r'"([a-z ]+)"', "".join(sources)))


def test_reader_is_led_through_ten_modules_in_an_hour():
    page = (PROJECT / "docs/understand/README.md").read_text()
    modules = re.findall(r"^\| \d+ \| `(\S+)` \|", page, re.MULTILINE)
    assert len(modules) == len(set(modules)) == 10
    assert sum(len((PROJECT / path).read_text().splitlines()) for path in modules) < 2500
