"""A file for a spreadsheet runs nothing, whichever sign parts its cells, and is read as UTF-8."""

import csv
import io

import pytest

from orchestration.console.export_file import sent
from orchestration.models.export import ExportFormat

FORMULAS = ["=1+1", "+1", "-1+cmd", "@sum", "\t=1", "\r=1", "\n=1"]
HIDDEN = ["x;=cmd|'/C calc'!A0", "x\t=1", "x; =1", "x\n=1", 'x;"=1"', "x,=1", " =1"]


def written(form, value):
    response = sent(iter([{"reason": value}]), ["reason"], form, "audit")
    return b"".join(response.streaming_content).decode()


@pytest.mark.parametrize("value", [*FORMULAS, *HIDDEN])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_no_cell_begins_with_a_formula(value, delimiter):
    text = written(ExportFormat.CSV, value).removeprefix("\ufeff")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    cells = [cell.strip().lstrip('"') for row in rows for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]


def test_words_stay_as_they_are():
    assert (
        written(ExportFormat.CSV, "Grüße; bis a-b, c@d").splitlines()[1] == '"Grüße; bis a-b, c@d"'
    )


def test_csv_names_its_encoding_and_json_does_not():
    assert written(ExportFormat.CSV, "Grüße").startswith("\ufeffreason")
    assert written(ExportFormat.JSON, "Grüße").startswith("[")
