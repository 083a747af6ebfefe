"""Files of records that are sent as they are read: CSV that is safe in a spreadsheet, and JSON."""

import csv
import json
from collections.abc import Iterator
from typing import Any

from django.http import StreamingHttpResponse

from ..models.export import ExportFormat

Record = dict[str, Any]
TYPES = {ExportFormat.CSV: "text/csv; charset=utf-8", ExportFormat.JSON: "application/json"}
# a spreadsheet takes a text that begins so for a formula, and runs it
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


class _Echo:
    """A file that returns what is written."""

    def write(self, text: str) -> str:
        return text


def sent(records: Iterator[Record], form: ExportFormat, name: str) -> StreamingHttpResponse:
    """Return the answer that sends records as a file, each as it is read."""
    lines = _csv(records) if form == ExportFormat.CSV else _json(records)
    response = StreamingHttpResponse(lines, content_type=TYPES[form])
    response["Content-Disposition"] = f'attachment; filename="{name}.{form.value}"'
    response["Cache-Control"] = "no-store"
    return response


def _csv(records: Iterator[Record]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    head: list[str] = []
    for record in records:
        if not head:
            head = list(record)
            yield str(writer.writerow(head))
        yield str(writer.writerow([_safe(value) for value in record.values()]))


def _safe(value: Any) -> Any:
    """Return a cell as data: an apostrophe makes a formula a text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return value


def _json(records: Iterator[Record]) -> Iterator[str]:
    before = "["
    for record in records:
        yield f"{before}\n{json.dumps(record, ensure_ascii=False)}"
        before = ","
    yield "[]\n" if before == "[" else "\n]\n"
