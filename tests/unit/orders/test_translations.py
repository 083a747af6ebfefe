"""The shop's message catalogues are complete, consistent and compiled."""

import re

import polib
import pytest

from tests.support.translations import CATALOGUES, message_of, messages

PLACES = re.compile(r"%\(\w+\)[sd]|<[^>]+>|\{\w+\}")
catalogue = pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.parents[1].name)


def test_catalogue_exists_for_each_language():
    assert [path.parents[1].name for path in CATALOGUES] == ["de"]


@catalogue
def test_catalogue_has_each_message_translated_and_no_other(path):
    entries = polib.pofile(str(path))
    assert {message_of(entry) for entry in entries} == messages(), "run: make messages"
    assert entries.untranslated_entries() == entries.fuzzy_entries() == []


@catalogue
def test_placeholders_are_kept_in_translations(path):
    for entry in polib.pofile(str(path)):
        for translated in entry.msgstr_plural.values() if entry.msgid_plural else [entry.msgstr]:
            assert sorted(PLACES.findall(entry.msgid)) == sorted(PLACES.findall(translated))


@catalogue
def test_compiled_catalogue_is_current(path):
    compiled = polib.mofile(str(path.with_suffix(".mo")))
    written = polib.pofile(str(path))

    def content(entries):
        return {message_of(entry): (entry.msgstr, str(entry.msgstr_plural)) for entry in entries}

    assert content(compiled) == content(written), "run: make messages"
