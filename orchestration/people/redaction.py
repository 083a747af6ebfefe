"""Personal data, hidden from those who may not see it.

A workflow declares which fields of its input are personal; what it loads is personal by itself. These
are hidden where they are, and wherever else they turn up: in requests, in what a service answered, in
its errors, in reasons. So are the parts of short ones (a first name, a street without its number), and
what URLs and base64 make of them.
"""

import json
import re
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import quote, quote_plus
from uuid import UUID

from django.utils.functional import cached_property  # functools' has one lock for all instances

from .. import registry
from ..models import Task
from ..payloads.placeholders import at, placeholders
from .word_finder import Finder

HIDDEN = "[hidden]"
SHORTEST = 4  # characters: a shorter word is hidden where it stands alone, not inside of others
SHORTEST_PART = 3  # likewise of a part, which is hidden only where it is a word of its own
SHORTEST_IN_BASE64 = 5  # bytes: fewer characters than six may stand in any encoded text
URL_SAFE = str.maketrans("+/", "-_")
NAME = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
MOST_PARTS = 5  # a text of more words is a letter, whose words say nothing
LETTER = 200  # characters: no shorter text has it, and to look for it costs the most by far


def typed(text: str, *, personal: bool) -> str:
    """Return a text about no one task, or hide it: it may name whom any task is for."""
    return text if personal or not text else HIDDEN


class Redactor:
    """Removes the personal data of one task: call it with a text, or with any JSON value."""

    do_not_call_in_templates = True  # templates take it as it is, and hand it to a filter

    def __init__(self, workflow: str, data: Any, loaded: Any = None) -> None:
        """Take the task's workflow and input; of a workflow that is gone, all input is personal.

        What its workflow has `loaded` for it is, too.
        """
        declared = registry.workflows.get(workflow)
        self._loaded = loaded
        self._paths: list[tuple[str, ...]] = [()]
        if declared is not None:
            templates = [declared.contact, *declared.personal]
            self._paths = [
                tuple(path[1:]) for template in templates for path in placeholders(template)
            ]
        self._data = data

    def __call__(self, value: Any) -> Any:
        """Return `value` without personal words."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {name: self(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self(part) for part in value]
        return value

    @property
    def input(self) -> Any:
        """Return the task's input: the personal fields hidden whole, numbers and all."""
        return self(self._without(self._data, ()))

    def _without(self, value: Any, at: tuple[str, ...]) -> Any:
        if at in self._paths:
            return _hidden(value)
        if isinstance(value, Mapping):
            return {name: self._without(part, (*at, name)) for name, part in value.items()}
        return value

    def _text(self, text: str) -> str:
        if text.strip().lower() in self._words:
            return HIDDEN
        finder = self._finder if len(text) < LETTER else self._finder_of_all
        return finder.replace(text, HIDDEN)

    @cached_property
    def _as_written(self) -> frozenset[str]:
        values = [self._loaded, *(at(self._data, path) for path in self._paths)]
        return frozenset(word.strip() for value in values for word in _texts(value))

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(word.lower() for word in self._as_written)

    @cached_property
    def _finder(self) -> Finder:
        return self._looking_for(word for word in self._as_written if len(word) < LETTER)

    @cached_property
    def _finder_of_all(self) -> Finder:
        return self._looking_for(self._as_written)

    def _looking_for(self, words: Iterable[str]) -> Finder:
        """Return the finder of words and of their parts."""
        whole = {
            form
            for word in words
            if len(word) >= SHORTEST
            for form in (word, *_encoded(word), *_in_base64(word))
        }
        long = [word for word in self._words if len(word) >= SHORTEST]
        parts = {form for part in _parts(long) for form in (part, *_encoded(part))}
        return Finder(whole, parts)


def answer_text(answer: str, *, cut: bool, redactor: Redactor | None) -> str:
    """Return a service's answer for reading: JSON is indented.

    Of an answer that is cut, the end may be a part of a personal word: then all of it is hidden.
    """
    if redactor and cut:
        return HIDDEN
    try:
        value = json.loads(answer)
    except ValueError:
        return redactor(answer) if redactor else answer
    shown = redactor(value) if redactor else value
    return json.dumps(shown, indent=2, ensure_ascii=False)


def redactors(tasks: Iterable[Task]) -> dict[UUID, Redactor]:
    """Return the redactors of tasks, by id; each workflow loads once."""
    by_workflow: dict[str, dict[UUID, Task]] = defaultdict(dict)
    for task in tasks:
        by_workflow[task.workflow][task.id] = task
    by_task = {}
    for workflow, of_workflow in by_workflow.items():
        declared = registry.workflows.get(workflow)
        load = declared.load if declared else None
        loaded = load([task.reference for task in of_workflow.values()]) if load else {}
        for task in of_workflow.values():
            by_task[task.id] = Redactor(workflow, task.data, loaded.get(task.reference))
    return by_task


def _parts(words: Iterable[str]) -> Iterator[str]:
    """Yield the words that names, streets and the first half of e-mail addresses consist of."""
    for word in words:
        names = NAME.finditer(word.partition("@")[0])
        parts = [name[0] for name in islice(names, MOST_PARTS + 1)]
        if len(parts) <= MOST_PARTS:
            yield from (part for part in parts if len(part) >= SHORTEST_PART)


def _encoded(word: str) -> Iterator[str]:
    """Yield a word as URLs have it, if that is another form."""
    yield from {quote(word, safe=""), quote_plus(word)} - {word}


def _in_base64(word: str) -> Iterator[str]:
    """Yield what a word is in base64, as written or in small letters, wherever in the encoded text it stands.

    Only the characters that are the word's alone: the first and the last may have bits of what is around.
    """
    for raw in {word.encode(errors="replace"), word.lower().encode(errors="replace")}:
        if len(raw) < SHORTEST_IN_BASE64:
            continue
        for before in range(3):
            bits = 8 * before, 8 * (before + len(raw))
            text = b64encode(bytes(before) + raw).decode()[-(-bits[0] // 6) : bits[1] // 6]
            yield from {text, text.translate(URL_SAFE)}


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        if value.strip():
            yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _hidden(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _hidden(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_hidden(part) for part in value]
    return value if value is None else HIDDEN
