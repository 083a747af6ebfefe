"""The one log: a line an event, of our code as of libraries; for machines JSON, for people text.

Lines are written by the standard library's `logging`, or by structlog. What a line is about (reference,
step, attempt) comes with it, or from the request that an agent works on.
"""

import logging
import re
import sys
import time
from typing import Any

import structlog
from django.core.exceptions import ImproperlyConfigured
from structlog.stdlib import ProcessorFormatter
from structlog.typing import EventDict, Processor

from orchestration.tracing import ids, subject

from . import env
from .log_limit import Limited

# What lines are about. Nothing else that is attached to a record is shown: some of it holds whole requests.
FIELDS = ("reference", "step", "attempt", "task", "workflow", "worker")
# The database quotes values of rows in this part of an error: a customer's, perhaps.
DETAIL = re.compile(r"^DETAIL:.*?(?=^CONTEXT:|^HINT:|^\s*$|\Z)", re.MULTILINE | re.DOTALL)
FORMATS = ("json", "text")


def configuration() -> dict[str, Any]:
    """Return the configuration of `logging`; let structlog's loggers and Python's warnings write by it."""
    logging.captureWarnings(True)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_gathering(),
            ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": formatter, "kind": _kind()}},
        "filters": {"limited": {"()": Limited}},
        "handlers": {
            "console": {
                "class": "logging.StreamHandler",
                "formatter": "line",
                "filters": ["limited"],
            }
        },
        "root": {"handlers": ["console"], "level": env.text("LOG_LEVEL", "INFO")},
        "loggers": {
            "rq": {"level": "WARNING"},
            "axes": {"level": "WARNING"},
            "django.request": {"level": "ERROR"},
            "aiohttp.access": {"level": "WARNING"},
        },
    }


def _kind() -> str:
    """Return the format of lines: as LOG_FORMAT says, or else text on a terminal."""
    kind = env.text("LOG_FORMAT") or ("text" if sys.stderr.isatty() else "json")
    if kind not in FORMATS:
        raise ImproperlyConfigured(f"LOG_FORMAT is {kind!r}; it may be 'json' or 'text'.")
    return kind


def formatter(kind: str = "") -> logging.Formatter:
    """Return the formatter of lines; without a `kind`, of those that the environment asks for."""
    as_json = (kind or _kind()) == "json"
    stamp: list[Processor] = [structlog.processors.TimeStamper("iso"), _add_logger]
    ending: list[Processor] = [
        structlog.processors.EventRenamer("message"),
        structlog.processors.JSONRenderer(ensure_ascii=False, default=str),
    ]
    return ProcessorFormatter(
        foreign_pre_chain=_gathering(),
        processors=[
            _add_process,
            structlog.processors.format_exc_info,
            _leave_details_out,
            *(stamp if as_json else [_add_time]),
            ProcessorFormatter.remove_processors_meta,
            *(ending if as_json else [_as_text]),
        ],
    )


def _gathering() -> list[Processor]:
    """Return what adds to a line what it is about, where it is written."""
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(allow=FIELDS),
        _add_subject,
    ]


def _add_subject(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Add the attempt that an agent works on, and the trace of the task."""
    if "reference" not in event and (attempt := subject.subject.get()):
        event.update(subject.about(attempt))
    if reference := event.get("reference"):
        event["trace_id"] = ids.trace_id(str(reference))
    return event


def _add_process(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Add the name of the process, as it is now: a process may go on in a fork."""
    event["process"] = env.text("PROCESS", "manage")
    return event


def _add_logger(_logger: Any, _method: str, event: EventDict) -> EventDict:
    event["logger"] = event["_record"].name
    return event


def _add_time(_logger: Any, _method: str, event: EventDict) -> EventDict:
    event["time"] = time.strftime("%H:%M:%S", time.localtime(event["_record"].created))
    return event


def _leave_details_out(_logger: Any, _method: str, event: EventDict) -> EventDict:
    for name in ("event", "exception"):
        if "DETAIL:" in (text := str(event.get(name, ""))):
            event[name] = DETAIL.sub("", text)
    return event


def _as_text(_logger: Any, _method: str, event: EventDict) -> str:
    """Return a line for people: time, process, level, words, what it is about."""
    time_, process, level, words = map(event.pop, ("time", "process", "level", "event"))
    exception = event.pop("exception", "")
    line = f"{time_} {process:<18} {level.upper():<7} {words}"
    if event:
        line += "  " + " ".join(f"{name}={value}" for name, value in event.items())
    return f"{line}\n{exception}" if exception else line
