"""Find any of many words in a text, in any case, at a cost that goes with the text alone.

A regular expression of all words tries each of them at each place. Here a place is looked up by its first
characters, then by as many as the words that begin so have: of words with one beginning, however many they
are, there are few lengths.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

BEGINNING = 3  # characters; no word may be shorter
LONGEST = 200  # characters that are looked up; words with the same ones are compared one by one

# Letters that are the same to a regular expression that ignores case, and have no capitals of their own; the
# last is the dotless i.
ALIKE = {
    code: chr(code).casefold()
    for code in range(0x80, 0x2000)
    if chr(code).islower() and len(chr(code).casefold()) == 1 and chr(code).casefold() != chr(code)
} | {0x131: "i"}


def folded(text: str) -> str:
    """Return a text in which case makes no difference, every character at its place."""
    lower = text.lower()
    if lower.isascii():
        return lower
    # the only letter whose small form is two characters
    return text.replace("İ", "i").lower().translate(ALIKE)


class Words:
    """Words to be found by the places at which they begin."""

    def __init__(self, words: Iterable[str]) -> None:
        self._short: set[str] = set()
        self._long: dict[str, list[str]] = defaultdict(list)
        lengths: dict[str, set[int]] = defaultdict(set)
        for word in sorted(map(folded, words), key=len, reverse=True):
            lengths[word[:BEGINNING]].add(min(len(word), LONGEST))
            if len(word) < LONGEST:
                self._short.add(word)
            else:
                self._long[word[:LONGEST]].append(word)
        self._lengths: Mapping[str, tuple[int, ...]] = {
            beginning: tuple(sorted(sizes, reverse=True)) for beginning, sizes in lengths.items()
        }

    def __contains__(self, beginning: str) -> bool:
        return beginning in self._lengths

    def ends(self, text: str, start: int) -> Iterator[int]:
        """Yield where the words that begin at a place of a folded text end, the longest first."""
        for length in self._lengths.get(text[start : start + BEGINNING], ()):
            piece = text[start : start + length]
            if len(piece) < length:
                continue  # the text ends before such a word could
            if piece in self._short:
                yield start + length
            elif length == LONGEST:
                for word in self._long.get(piece, ()):
                    if text.startswith(word, start):
                        yield start + len(word)


class Finder:
    """Finds words `anywhere` in a text, and others where they stand `alone`."""

    def __init__(self, anywhere: Iterable[str], alone: Iterable[str]) -> None:
        self._anywhere, self._alone = Words(anywhere), Words(alone)

    def replace(self, text: str, by: str) -> str:
        """Return a text with something else in place of each word; of two at one place, of the longer."""
        plain = folded(text)
        parts, done = [], 0
        for start in range(len(text)):
            beginning = plain[start : start + BEGINNING]
            if start < done or not (beginning in self._anywhere or beginning in self._alone):
                continue
            if end := self._end(plain, start):
                parts += [text[done:start], by]
                done = end
        return "".join([*parts, text[done:]]) if parts else text

    def _end(self, text: str, start: int) -> int:
        """Return where the word at a place ends; 0 if there is none."""
        for end in self._anywhere.ends(text, start):
            return end
        if not (start and _is_of_word(text[start - 1])):
            for end in self._alone.ends(text, start):
                if end == len(text) or not _is_of_word(text[end]):
                    return end
        return 0


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"
