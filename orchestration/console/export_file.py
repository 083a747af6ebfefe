"""Files of records that are sent as they are read: CSV that is safe in a spreadsheet, and JSON."""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from django.http import StreamingHttpResponse

from ..models.export import ExportFormat

Record = dict[str, Any]
TYPES = {ExportFormat.CSV: "text/csv; charset=utf-8", ExportFormat.JSON: "application/json"}
# A spreadsheet takes a cell that begins so for a formula, and runs it. In some countries a cell begins after
# a semicolon, or after a tab.
FORMULA = re.compile(r"""((?:^|[;\t\r\n])[\s"']*)([=+\-@])|^(?=[\t\r\n])""")
BOM = "\ufeff"  # by which a spreadsheet knows that it is UTF-8


class _Echo:
    """A file that returns what is written."""

    def write(self, text: str) -> str:
        return text


def sent(
    records: Iterator[Record], columns: Sequence[str], form: ExportFormat, name: str
) -> StreamingHttpResponse:
    """Return the answer that sends records of these columns as a file, each as it is read."""
    lines = _csv(records, columns) if form == ExportFormat.CSV else _json(records)
    response = StreamingHttpResponse(lines, content_type=TYPES[form])
    response["Content-Disposition"] = f'attachment; filename="{name}.{form.value}"'
    response["Cache-Control"] = "no-store"
    return response


def _csv(records: Iterator[Record], columns: Sequence[str]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield BOM + str(writer.writerow(columns))
    for record in records:
        yield str(writer.writerow([_safe(record[name]) for name in columns]))


def _safe(value: Any) -> Any:
    """Return a cell as data: an apostrophe before it makes a formula a text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False)
    return FORMULA.sub(r"\1'\2", value) if isinstance(value, str) else value


def _json(records: Iterator[Record]) -> Iterator[str]:
    before = "["
    for record in records:
        yield f"{before}\n{json.dumps(record, ensure_ascii=False)}"
        before = ","
    yield "[]\n" if before == "[" else "\n]\n"
