"""What shows why an attempt failed: the traceback of its exception, and what the service answered.

It is made only for a failure, inside the agent's process: bounded, and without credentials. What is
personal in it is hidden when it is shown, as in all payloads.
"""

import json
import traceback
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from ..messaging.messages import MAX_ANSWER, MAX_TRACEBACK, Evidence
from ..payloads.secrets import without_secrets
from ..payloads.text import printable

LOOKED_AT = 65_536  # bytes of an answer: of a longer one only the beginning is kept
FRAMES = 60  # of a traceback, the last ones
HEARD = "sas_heard"  # an attribute of errors
LONGEST_LINE = 1_000  # characters of a frame, or of the exception's own text


class Heard(NamedTuple):
    """A response of the service, as it came: `status` is that of HTTP."""

    status: int
    raw: bytes


def hear(error: BaseException, heard: Sequence[Heard]) -> None:
    """Keep with an error what the service answered last before it was raised."""
    if heard:
        vars(error).setdefault(HEARD, heard[-1])


def evidence(
    fault: BaseException | None, raised: BaseException | None, secrets: Iterable[str] = ()
) -> Evidence | UnsetType:
    """Return the evidence of a failure; UNSET if there is none.

    `fault` is what an agent reports by itself; `raised` what its code did not expect: that has a traceback.
    """
    heard: Heard | None = getattr(raised or fault, HEARD, None)
    if raised is None and heard is None:
        return UNSET
    known = tuple(secrets)
    answer, cut = _answer(heard.raw, known) if heard else ("", False)
    return Evidence(
        traceback=_traceback(raised, known) if raised else "",
        status=heard.status if heard else 0,
        answer=answer,
        cut=cut,
    )


def _traceback(error: BaseException, known: tuple[str, ...]) -> str:
    """Return the last frames of a traceback; the exception itself is its last line."""
    captured = traceback.TracebackException.from_exception(error, limit=-FRAMES)
    lines = [_shortened(_clean(line, known)) for line in captured.format()]
    last, room = [], MAX_TRACEBACK
    for line in reversed(lines):
        room -= len(line.encode())
        if room < 0:
            break
        last.append(line)
    return "".join(reversed(last)).strip("\n")


def _shortened(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…\n"


def _answer(raw: bytes, known: tuple[str, ...]) -> tuple[str, bool]:
    """Return the beginning of an answer, and whether there was more; JSON is written without escapes."""
    text, cut = raw[:LOOKED_AT].decode("utf-8", "replace"), len(raw) > LOOKED_AT
    try:
        text = json.dumps(without_secrets(json.loads(text), known), ensure_ascii=False)
    except (ValueError, RecursionError):
        text = without_secrets(text, known)
    shown = printable(text, keep="\n\t").encode()[:MAX_ANSWER].decode(errors="ignore")
    return shown, cut or len(text.encode("utf-8", "replace")) > MAX_ANSWER


def _clean(text: str, known: tuple[str, ...]) -> str:
    return printable(without_secrets(text, known), keep="\n\t")
