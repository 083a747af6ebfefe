"""Fingerprint failures by cause: normalise error messages by removing what differs between tasks.

Pure. Each change of the rules needs a new `VERSION`. It is part of each fingerprint, so fingerprints
of different rules never match.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

VERSION = 2
READ_LENGTH = 2_000  # characters of a message that are read
MESSAGE_LENGTH = 200  # characters kept: agents cut long answers off at a place that varies with ids

# An id may consist of digits only, so ids and numbers share one placeholder.
VALUE, ADDRESS, URL, ID, TIME = "<value>", "<address>", "<url>", "<#>", "<time>"
# the message, or code, of a cause whose service words each failure differently
VARIOUS = "<various>"

# Applied from top to bottom, the most specific pattern first. Later patterns keep a placeholder: it has
# neither digits nor quotes.
_RULES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"[<>]"), " "),  # only these rules write placeholders
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s\"'<>]*[^\s\"'<>.,;:!?)\]}]", re.IGNORECASE), URL),
    (re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*"), ADDRESS),
    # quoted: from a quote that opens a word to the same kind that closes one; can't has none
    (re.compile(r"(?<!\w)'[^'\n]*(?:\b'\b[^'\n]*)*'(?!\w)|\"[^\"\n]*\"|`[^`\n]*`|“[^”\n]*”|«[^»\n]*»"),
     VALUE),
    # a uuid on its own; one in a longer word, or 32 digits of one, go with the word
    (re.compile(r"(?<![\w-])[+-]?[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}(?![\w-])",
                re.IGNORECASE), ID),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)?"
                r"|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"), TIME),
    (re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d+|/\d+)?(?![\w.])"), ADDRESS),
    (re.compile(r"(?<![\w:])\[?(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?:\](?::\d+)?)?(?![\w:])", re.IGNORECASE),
     lambda match: ADDRESS if any(map(str.isalnum, match[0])) else match[0]),
    (re.compile(r"\b(?:localhost|[a-z0-9-]+(?:\.[a-z0-9-]+)+):\d{2,5}\b", re.IGNORECASE), ADDRESS),
    # 12, -3.5, 1,000.00, 12 %, 30s: no other letters
    (re.compile(r"(?<![\w-])[+-]?\d+(?:[.,_]\d+)*(?:\s?%|(?:[mn]?s|min|h|[kKMG]i?B)(?!\w)|(?![\w-]))"),
     ID),
    # a word with a digit in it: pi_3Mtw, A-1042, 0xff, attempt#7; and KQFM-XDTP, even without
    (re.compile(r"(?<!\w)#?(?=[\w-]*\d)\w+(?:-\w+)*"), ID),
    (re.compile(r"\b[A-Z]{4,}(?:-[A-Z]{4,})+\b|\b[0-9a-fA-F]{8,}\b"), ID),
    # long and in mixed case, unlike a word: a token
    (re.compile(r"\b(?=\w*[a-z])(?=\w*[A-Z])(?![A-Z]?[a-z]+(?:[A-Z][a-z]+)*\b)\w{16,}\b"), ID),
    # a list of equal placeholders, of any length
    (re.compile(r"(<(?:\w+|#)>)(?:(?:\s*[,;|]\s*|\s+(?:and|or)\s+|\s+)\1)+"), r"\1"),
    (re.compile(r"\s+"), " "),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Cause:
    """Why a step failed: what all failures of one incident have in common."""

    workflow: str
    step: str
    direction: str
    agent: str
    outcome: str
    code: str
    message: str  # normalised

    @property
    def fingerprint(self) -> str:
        """The hash that identifies the cause."""
        parts = (*self.kind, self.message)
        # each part with its length, so that no two causes read alike
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return f"v{VERSION}-{hashlib.sha256(text.encode()).hexdigest()[:24]}"

    @property
    def kind(self) -> tuple[str, ...]:
        """All fields but the message."""
        return (*self.of_step, self.code)

    @property
    def of_step(self) -> tuple[str, ...]:
        """All fields but the code and the message."""
        return (self.workflow, self.step, self.direction, self.agent, self.outcome)

    @property
    def title(self) -> str:
        """The cause in one line."""
        what = f"the undo of {self.step}" if self.direction == "undo" else self.step
        return f"{self.workflow}: {what} failed ({self.code or self.outcome})"[:300]


@lru_cache(maxsize=1024)
def normalise(message: str) -> str:
    """Replace the ids, numbers, addresses, URLs and quoted values of a message by placeholders."""
    text = unicodedata.normalize("NFC", message.encode("utf-8", "replace").decode())[:READ_LENGTH]
    for pattern, sign in _RULES:
        text = pattern.sub(sign, text)
    return text.strip(" .:;,")[:MESSAGE_LENGTH].rstrip()
