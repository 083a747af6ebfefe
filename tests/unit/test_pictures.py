"""No page is left out of those that `make pictures` looks at, and no picture out of the documentation."""

import re

from django.urls import get_resolver

from sasweb.stack.folders import PROJECT
from tests.pictures.pages import ACTS, PAGES, PARTS

SHOWN = [shown for pages in PAGES.values() for shown in pages]


def names(namespace):
    """Return the names of all addresses in a namespace."""
    (resolver,) = [
        path for path in get_resolver().url_patterns if getattr(path, "namespace", "") == namespace
    ]
    return {f"{namespace}:{pattern.name}" for pattern in resolver.url_patterns}


def test_addresses_of_shop_and_dashboard_are_pictured_or_exempt():
    looked_at = {shown.url for shown in SHOWN if ":" in shown.url}
    assert looked_at & (ACTS | PARTS) == set()
    assert looked_at | ACTS | PARTS == names("shop") | names("ops")


def test_names_are_used_once():
    called = [shown.name for shown in SHOWN]
    assert len(called) == len(set(called))


def test_documentation_shows_exactly_its_pictures():
    pictures = {f"{shown.name}.png" for shown in SHOWN if shown.docs}
    images = PROJECT / "docs" / "images"
    assert {path.name for path in images.iterdir()} == pictures
    linked = re.findall(
        r"images/([\w-]+\.png)", (PROJECT / "docs" / "results" / "pictures.md").read_text()
    )
    assert sorted(linked) == sorted(pictures)
    assert sum(path.stat().st_size for path in images.iterdir()) < 2_500_000
