"""The shop speaks each of its languages completely, and what is compiled is what is written."""

import re

import polib
import pytest

from tests.translations import CATALOGUES, said, words_of

PLACES = re.compile(r"%\(\w+\)[sd]|<[^>]+>|\{\w+\}")
catalogue = pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.parents[1].name)


def test_there_is_a_catalogue():
    assert [path.parents[1].name for path in CATALOGUES] == ["de"]


@catalogue
def test_all_that_is_said_is_translated_and_nothing_else(path):
    entries = polib.pofile(str(path))
    assert {words_of(entry) for entry in entries} == said(), "run: make messages"
    assert entries.untranslated_entries() == entries.fuzzy_entries() == []


@catalogue
def test_what_is_filled_in_stays(path):
    for entry in polib.pofile(str(path)):
        for translated in entry.msgstr_plural.values() if entry.msgid_plural else [entry.msgstr]:
            assert sorted(PLACES.findall(entry.msgid)) == sorted(PLACES.findall(translated))


@catalogue
def test_what_is_compiled_is_what_is_written(path):
    compiled = polib.mofile(str(path.with_suffix(".mo")))
    written = polib.pofile(str(path))

    def content(entries):
        return {words_of(one): (one.msgstr, str(one.msgstr_plural)) for one in entries}

    assert content(compiled) == content(written), "run: make messages"
