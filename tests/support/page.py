"""The elements of a page, found by tag, id, class and attribute."""

import re
from html.parser import HTMLParser

from django.db import connection
from django.test.utils import CaptureQueriesContext

POLL = {"HX-Request": "true"}  # htmx sends it with a poll and with an action in place
VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
SELECTOR = re.compile(
    r"""(?P<tag>^[\w-]+) | \#(?P<id>[\w-]+) | \.(?P<cls>[\w-]+)
    | \[(?P<name>[\w-]+)(?:(?P<how>[*^]?)="(?P<value>[^"]*)")?\]""",
    re.VERBOSE,
)


class Element:
    """An element with its attributes; `text` joins what it contains by single spaces."""

    def __init__(self, tag, attributes):
        self.tag = tag
        self.attributes = {name: value or "" for name, value in attributes}
        self.children = []

    def __getitem__(self, name):
        return self.attributes[name]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self._texts()).split())

    def all(self, selector="") -> list["Element"]:
        """Return the elements below this one, as `tag#id.class[name][name="value"]` selects them."""
        assert not SELECTOR.sub("", selector), selector
        conditions = [match.groupdict() for match in SELECTOR.finditer(selector)]
        return [element for element in self._descendants() if all(map(element._meets, conditions))]

    def only(self, selector) -> "Element":
        """Return the only element that a selector finds."""
        elements = self.all(selector)
        assert len(elements) == 1, f"{len(elements)} elements are {selector}"
        return elements[0]

    def texts(self, selector) -> list[str]:
        return [element.text for element in self.all(selector)]

    def section(self, heading) -> "Element":
        """Return the section that a heading of this id names."""
        return self.only(f'section[aria-labelledby="{heading}"]')

    def rows(self) -> list[list[str]]:
        """Return the texts of the cells of each row that is not a table's head."""
        rows = [[cell.text for cell in row.cells()] for row in self.all("tr")]
        return [row for row in rows if row]

    def cells(self) -> list["Element"]:
        return [cell for cell in self.children if isinstance(cell, Element) and not cell._heads()]

    def numbers(self) -> list[float]:
        return [
            float(number.replace(",", "")) for number in re.findall(r"\d[\d,.]*\d|\d", self.text)
        ]

    def _heads(self):
        return self.tag == "th" and self.attributes.get("scope") == "col"

    def _texts(self):
        for child in self.children:
            if isinstance(child, Element):
                yield from child._texts()
            else:
                yield child

    def _descendants(self):
        for child in self.children:
            if isinstance(child, Element):
                yield child
                yield from child._descendants()

    def _meets(self, condition):
        if condition["tag"]:
            return self.tag == condition["tag"]
        if condition["id"]:
            return self.attributes.get("id") == condition["id"]
        if condition["cls"]:
            return condition["cls"] in self.attributes.get("class", "").split()
        value, actual = condition["value"], self.attributes.get(condition["name"])
        if value is None or actual is None:
            return actual is not None
        matches = {"": actual == value, "*": value in actual, "^": actual.startswith(value)}
        return matches[condition["how"]]


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = [Element("", [])]

    def handle_starttag(self, tag, attrs):
        element = Element(tag, attrs)
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.open[-1].children.append(Element(tag, attrs))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
            self.open.pop()

    def handle_data(self, data):
        self.open[-1].children.append(data)


def page(response) -> Element:
    """Return a response's elements."""
    return elements(response.text)


def elements(html: str) -> Element:
    """Return the elements of HTML; a tag that is not closed, or closed twice, is an error."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert len(reader.open) == 1, f"<{reader.open[-1].tag}> is not closed"
    return reader.open[0]


def poll_of(response) -> str:
    """Return the address that a page's live part polls."""
    return page(response).only("#live")["hx-get"]


def problems_of(response) -> dict[str, str]:
    """Return the sentences of a page's banner by the codes of the problems."""
    problems = page(response).only("#health").all("p")
    return {problem["data-problem"]: problem.text for problem in problems}


def listed(response) -> list[str]:
    """Return the names of the tasks that a page lists."""
    return page(response).texts('a[data-open][href^="/ops/tasks/"]')


def conflict_of(response) -> tuple[str, str]:
    """Return whose action came first, according to a page of status 409, and what it says."""
    assert response.status_code == 409
    conflict = page(response).only("[data-conflict]")
    assert conflict.texts("strong") in ([], [conflict["data-conflict"]])  # none: "you"
    return conflict["data-conflict"], conflict.text


def query_count(client, address, status=200) -> int:
    """Return how many queries a page costs."""
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == status
    return len(queries)
