"""A page whose form is filled in: its HTML, with the values of fields put in."""

from collections import defaultdict
from html import escape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit

NOT_FILLED = {"hidden", "password", "file", "submit", "button", "image", "reset"}
NOTICE = (
    '<p class="strip warning errornote" role="alert" tabindex="-1" autofocus data-kept>Nothing was done:'
    " your session had ended. Check what you typed, and send it again.{more}</p>"
)
NOT_WHOLE = " Not all of it was kept: type passwords, files and long texts again."


def filled(html: str, kept: dict[str, Any], address: str) -> str:
    """Return a page with its form that was sent to `kept["path"]` filled in, or "" if it has none."""
    for whole_address in (True, False):  # an action in place adds a query to the form's own
        filler = _Filler(kept, address, whole_address=whole_address)
        filler.feed(html)
        filler.close()
        if filler.found:
            return "".join(filler.out)
    return ""


class _Filler(HTMLParser):
    """Copies a page as it is, but for the fields of one form."""

    def __init__(self, kept: dict[str, Any], address: str, *, whole_address: bool) -> None:
        super().__init__(convert_charrefs=False)
        self.kept, self.address, self.whole_address = kept, address, whole_address
        self.values: dict[str, list[str]] = defaultdict(list)
        for name, value in kept["fields"]:
            self.values[name].append(value)
        self.out: list[str] = []
        self.found = self.inside = self.skips = False
        self.select: list[str] = []
        self.closed: list[
            tuple[int, bool]
        ] = []  # <details>: where they begin, whether they are open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Copy a tag, or write a field of the form anew."""
        found = dict(attrs)
        if tag == "details":
            self.closed.append((len(self.out), "open" in found))
        if tag == "form" and not self.found and self._is_wanted(found):
            self._open()
            attrs = [*attrs, ("data-opened", None)]  # a page that polls leaves it alone
            self.out.append(_tag(tag, attrs))
        elif self.inside and tag in {"input", "textarea", "select", "option"} and self.values:
            self.out.append(self._field(tag, attrs, found))
        else:
            self.out.append(self.get_starttag_text() or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Copy a tag that is closed at once: of a picture, or a field."""
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        """Copy the end of a tag."""
        if tag == "form":
            self.inside = False
        if tag == "details" and self.closed:
            self.closed.pop()
        if tag == "textarea":
            self.skips = False
        self.out.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        """Copy text, but for what stood in a field."""
        self._copy(data)

    def handle_entityref(self, name: str) -> None:
        """Copy a character by its name."""
        self._copy(f"&{name};")

    def handle_charref(self, name: str) -> None:
        """Copy a character by its number."""
        self._copy(f"&#{name};")

    def handle_comment(self, data: str) -> None:
        """Copy a comment."""
        self.out.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        """Copy the document's type."""
        self.out.append(f"<!{decl}>")

    def _copy(self, text: str) -> None:
        if not self.skips:
            self.out.append(text)

    def _is_wanted(self, form: dict[str, str | None]) -> bool:
        if (form.get("method") or "").lower() != "post":
            return False
        action = urlsplit(urljoin(self.address, form.get("action") or self.address))
        wanted = urlsplit(self.kept["path"])
        same = action.path == wanted.path
        return same and (not self.whole_address or action.query == wanted.query)

    def _open(self) -> None:
        """Begin the form: with a word on it, and in sight."""
        self.found = self.inside = True
        for at, is_open in self.closed:
            if not is_open:
                self.out[at] = f"{self.out[at].removesuffix('>')} open>"
        self.out.append(NOTICE.format(more="" if self.kept["whole"] else NOT_WHOLE))

    def _field(
        self, tag: str, attrs: list[tuple[str, str | None]], found: dict[str, str | None]
    ) -> str:
        text, name = self.get_starttag_text() or "", found.get("name") or ""
        if tag == "select":
            self.select = self.values.get(name, [])
            return text
        if tag == "option":
            return _tag(tag, _marked(attrs, "selected", on=found.get("value") in self.select))
        kind = (found.get("type") or "text").lower()
        if tag == "input" and kind in {"checkbox", "radio"}:
            value = found.get("value") or "on"
            return _tag(tag, _marked(attrs, "checked", on=value in self.values.get(name, ())))
        if name not in self.values or kind in NOT_FILLED:
            return text
        if tag == "textarea":
            self.skips = True
            return f"{text}\n{escape(self._next(name))}"
        others = [one for one in attrs if one[0] != "value"]
        return _tag(tag, [*others, ("value", self._next(name))])

    def _next(self, name: str) -> str:
        """Return the next value of a field: of several with one name each has its own."""
        values = self.values[name]
        return values.pop(0) if len(values) > 1 else values[0]


def _marked(
    attrs: list[tuple[str, str | None]], mark: str, *, on: bool
) -> list[tuple[str, str | None]]:
    return [*(one for one in attrs if one[0] != mark), *([(mark, None)] if on else [])]


def _tag(tag: str, attrs: list[tuple[str, str | None]]) -> str:
    words = [name if value is None else f'{name}="{escape(value)}"' for name, value in attrs]
    return f"<{' '.join([tag, *words])}>"
