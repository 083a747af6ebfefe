"""The secrets of compose: for the containers' users to read, in a folder for its owner alone."""

import os

import pytest

from deploy import compose, make_secrets


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(make_secrets, "FOLDER", tmp_path / "secrets")
    return make_secrets.FOLDER


def mode(path):
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_files_are_readable_in_a_private_folder_under_any_umask(folder, umask):
    before = os.umask(umask)
    try:
        make_secrets.main()
    finally:
        os.umask(before)
    assert mode(folder) == 0o700
    assert {mode(file) for file in folder.iterdir()} == {0o644}


def test_every_secret_of_compose_is_made_and_kept(folder):
    make_secrets.main()
    first = {file.name: file.read_text() for file in folder.iterdir()}
    assert first.keys() == compose.load()["secrets"].keys()
    make_secrets.main()
    assert {file.name: file.read_text() for file in folder.iterdir()} == first


def test_files_that_a_former_run_closed_are_opened(folder):
    make_secrets.main()
    for file in folder.iterdir():
        file.chmod(0o600)
    make_secrets.main()
    assert {mode(file) for file in folder.iterdir()} == {0o644}
