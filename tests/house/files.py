"""Lines of files under version control, and duplicated blocks."""

import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

SUFFIXES = {".py", ".css", ".js", ".toml"}
SHORTEST = 6  # lines: a shorter block that is repeated may be chance


class Block(NamedTuple):
    """A duplicated block of lines: its file, first line and length."""

    path: str
    line: int
    lines: int


def sources(root: Path, *, tests: bool = False) -> dict[str, str]:
    """Return the text of each source file under version control, by its path: of tests or all else.

    Sources are Python, CSS, JavaScript and TOML anywhere, and all files below `templates`.
    """
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=root, text=True)
    paths = [Path(name) for name in listed.split("\0") if name]
    return {
        str(path): (root / path).read_text()
        for path in paths
        if (path.parts[0] == "tests") == tests
        and (path.suffix in SUFFIXES or path.parts[0] == "templates")
        and (root / path).is_file()  # not one that is deleted, but not yet committed
    }


def without_migrations(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the files that are not migrations, which are history."""
    return {path: text for path, text in texts.items() if "migrations" not in Path(path).parts}


def lines(texts: Mapping[str, str]) -> dict[str, int]:
    """Return the number of lines of each file, blank ones included."""
    return {path: len(text.splitlines()) for path, text in texts.items()}


def duplicates(texts: Mapping[str, str]) -> list[Block]:
    """Return the longest runs of lines whose every window of `SHORTEST` occurs elsewhere too.

    Lines are compared without indentation and with single spaces; blank ones are skipped. A block
    that occurs three times counts three times.
    """
    numbered = {
        path: [
            (number, " ".join(line.split()))
            for number, line in enumerate(text.splitlines(), 1)
            if line.strip()
        ]
        for path, text in texts.items()
    }
    windows = {
        path: [
            tuple(line for _, line in rows[start : start + SHORTEST])
            for start in range(len(rows) - SHORTEST + 1)
        ]
        for path, rows in numbered.items()
    }
    times = Counter(window for file_windows in windows.values() for window in file_windows)
    blocks = []
    for path, file_windows in windows.items():
        length = 0
        for start, window in enumerate([*file_windows, ()]):
            if times[window] > 1:
                length += 1
            elif length:
                first = numbered[path][start - length][0]
                blocks.append(Block(path, first, length + SHORTEST - 1))
                length = 0
    return blocks
