"""Lines of the log: for machines and for people, with what they are about, without personal data."""

import json
import logging
import sys
from contextvars import copy_context
from types import SimpleNamespace

import pytest
import structlog
from django.core.exceptions import ImproperlyConfigured
from psycopg2 import IntegrityError

from orchestration.tracing import ids, subject
from sasweb import log

ATTEMPT = SimpleNamespace(reference="o-1", name="pay", step=7, attempt=2)
WHOLE = {"reference": "o-1", "step": "pay", "attempt": 2, "trace_id": ids.trace_id("o-1")}
REFUSED = (
    "duplicate key value violates unique constraint\n"
    "DETAIL:  Key (email)=(ada@example.org\nGenève) already exists.\n"
)


@pytest.fixture
def lines(monkeypatch):
    """Return the lines that are written, as records for `formatted`."""
    monkeypatch.setenv("PROCESS", "work-payment")
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    logger = logging.getLogger("lines")
    monkeypatch.setattr(logger, "handlers", [handler])
    monkeypatch.setattr(logger, "propagate", False)
    logger.setLevel(logging.INFO)
    return SimpleNamespace(logger=logger, records=records)


def as_json(record):
    return json.loads(log.formatter("json").format(record))


def as_text(record):
    return log.formatter("text").format(record)


def test_line_for_machines_has_its_fields(lines):
    lines.logger.info("%s is tried again", "pay", extra=subject.about(ATTEMPT))
    (record,) = lines.records
    line = as_json(record)
    assert line.pop("timestamp").endswith("Z")
    known = {"level": "info", "process": "work-payment", "logger": "lines"}
    assert line == WHOLE | known | {"message": "pay is tried again"}


def test_line_for_people_begins_as_before(lines):
    lines.logger.warning("%d requests are not sent", 3)
    lines.logger.warning("pay is in error", extra=subject.about(ATTEMPT))
    plain, about = map(as_text, lines.records)
    assert plain[8:] == " work-payment       WARNING 3 requests are not sent"
    assert about.endswith(
        f"pay is in error  reference=o-1 step=pay attempt=2 trace_id={ids.trace_id('o-1')}"
    )


def test_what_an_agents_code_writes_is_about_its_request(lines):
    def work():
        subject.subject.set(ATTEMPT)
        lines.logger.info("the partner is slow")
        return as_json(lines.records[0])

    line = copy_context().run(work)
    assert {name: line[name] for name in WHOLE} == WHOLE
    lines.logger.info("another")
    assert "reference" not in as_json(lines.records[1])


def test_line_of_structlog_is_a_line_like_others(lines):
    structlog.get_logger("lines").warning("pay is in error", **subject.about(ATTEMPT))
    (record,) = lines.records
    assert {name: as_json(record)[name] for name in WHOLE} == WHOLE
    assert "WARNING pay is in error  reference=o-1" in as_text(record)


def test_nothing_else_that_is_attached_to_a_record_is_shown(lines):
    lines.logger.error("failed", extra={"request": "ada@example.org", "status_code": 500})
    (record,) = lines.records
    assert "ada" not in as_text(record) + str(as_json(record))


@pytest.mark.parametrize("form", [as_text, lambda record: str(as_json(record))])
def test_values_of_rows_that_an_error_quotes_are_left_out(lines, form):
    error = IntegrityError(REFUSED)
    lines.logger.error("a batch is split", exc_info=error)
    lines.logger.info("a batch is split: %s", error)
    for record in lines.records:
        line = form(record)
        assert "a batch is split" in line
        assert "unique constraint" in line
        assert "example.org" not in line
        assert "Genève" not in line


@pytest.mark.parametrize(
    ("setting", "terminal", "kind"),
    [("", True, "text"), ("", False, "json"), ("json", True, "json"), ("text", False, "text")],
)
def test_format_follows_the_output_unless_it_is_set(monkeypatch, setting, terminal, kind):
    monkeypatch.setenv("LOG_FORMAT", setting)
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: terminal))
    assert log.configuration()["formatters"]["line"]["kind"] == kind


def test_unknown_format_stops_the_start(monkeypatch):
    monkeypatch.setenv("LOG_FORMAT", "xml")
    with pytest.raises(ImproperlyConfigured, match="'json' or 'text'"):
        log.configuration()
