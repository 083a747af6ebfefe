"""Variables of the environment, given by value or by file."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from sasweb import env


@pytest.fixture
def by_file(tmp_path, monkeypatch):
    """Give the variable KEY by a file of some bytes."""

    def give(content):
        file = tmp_path / "key"
        file.write_bytes(content)
        monkeypatch.setenv("KEY_FILE", str(file))

    return give


@pytest.mark.parametrize("content", [b"s3cret", b"s3cret\n", b"s3cret\r\n"])
def test_variable_given_by_file_is_its_content(by_file, content):
    by_file(content)
    assert env.text("KEY", "default") == "s3cret"


def test_other_types_are_read_from_files_too(by_file):
    by_file(b"yes\n")
    assert env.flag("KEY", default=False) is True
    by_file(b"7\n")
    assert env.number("KEY", 1) == 7
    by_file(b"a, b\n")
    assert env.words("KEY") == ["a", "b"]


def test_empty_variable_counts_as_unset_beside_a_file(by_file, monkeypatch):
    monkeypatch.setenv("KEY", "")
    by_file(b"s3cret")
    assert env.text("KEY") == "s3cret"


def test_variable_given_both_ways_is_refused_without_its_value(by_file, monkeypatch):
    monkeypatch.setenv("KEY", "by-value")
    by_file(b"by-file")
    with pytest.raises(ImproperlyConfigured, match="KEY and KEY_FILE") as refused:
        env.text("KEY")
    assert "by-" not in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe"])
def test_file_without_usable_text_is_refused(by_file, content):
    by_file(content)
    with pytest.raises(ImproperlyConfigured, match="KEY_FILE"):
        env.text("KEY", "default")


def test_missing_file_is_refused_with_a_sentence(monkeypatch):
    monkeypatch.setenv("KEY_FILE", "/nowhere/key")
    with pytest.raises(ImproperlyConfigured, match=r"'/nowhere/key' cannot be read: No such file"):
        env.text("KEY", "default")


def test_default_where_neither_is_given():
    assert env.text("KEY", "default") == "default"
