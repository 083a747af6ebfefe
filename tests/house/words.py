"""The words that this project avoids, in names, docstrings, comments, pages and messages."""

import re
from collections.abc import Iterator
from pathlib import Path

import polib

PHRASES = (
    "nobody, somebody, whoever, whomever, whatever, told, tells, said, of which, so many, let be, "
    "let go, for good, is no, there is no such, see to, take care of, what came of it"
)
_JOINED = {
    "is no": r"(?<!there\s)is[\s_]no(?!\slonger)",
    "nobody": r'(?<!")nobody(?!")',
}  # "there is no key" is plain English, "nobody" a Unix user
# not "en-us", which is a language, "US", a country, or "wait_us", microseconds
_PRONOUNS = r"(?<![\w.-])(?:(?-i:us)|we|ours)(?![\w-])"


def _pattern(phrase: str) -> str:
    return _JOINED.get(phrase) or r"[\s_#*]+".join(phrase.split())


_PHRASES = rf"(?<![a-z])(?:{'|'.join(map(_pattern, PHRASES.split(', ')))})(?![a-z])"
AVOIDED = re.compile(rf"{_PHRASES}|{_PRONOUNS}", re.IGNORECASE)
AVOIDED_BY_THE_SHOP = re.compile(_PHRASES, re.IGNORECASE)  # to its customers it is "we"
SHOP = {"locale", "orders", "shop", "account", "mail", "400.html", "500.html", "503.html"}
PARTS_OF_A_NAME = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def avoided(text: str, words: re.Pattern[str] = AVOIDED) -> list[tuple[int, str]]:
    """Return the words to avoid that stand in a text, each with the number of its line."""
    text = PARTS_OF_A_NAME.sub("_", text)
    return [
        (text.count("\n", 0, match.start()) + 1, " ".join(match[0].split()))
        for match in words.finditer(text)
    ]


def in_file(root: Path, path: Path) -> Iterator[tuple[int, str]]:
    """Yield the words to avoid of a file below `root`; of a message catalogue only the originals."""
    words = AVOIDED if SHOP.isdisjoint(path.parts) else AVOIDED_BY_THE_SHOP
    if path.suffix != ".po":
        yield from avoided((root / path).read_text(), words)
        return
    for entry in polib.pofile(str(root / path)):
        yield from ((entry.linenum, word) for _, word in avoided(entry.msgid, words))
