"""The anchors of pages of the documentation, and the code on them."""

import re
from functools import cache
from pathlib import Path

HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANCHOR = re.compile(r"<a id=\"([^\"]+)\"")


@cache
def anchors(path: Path) -> set[str]:
    """Return the anchors of a page, as GitHub makes them of its headings."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    slugs = set(ANCHOR.findall(text))
    for heading in HEADING.findall(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        plain = re.sub(r"<[^>]*>", "", plain)
        slug = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        slugs.add(slug if slug not in slugs else f"{slug}-1")
    return slugs


def blocks(text: str, language: str) -> list[str]:
    """Return the code blocks of a language."""
    return [block for kind, block in BLOCK.findall(text) if kind == language]
