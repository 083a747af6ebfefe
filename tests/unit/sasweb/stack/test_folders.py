"""A stack uses only its own folders: a user who can write into one decides what it runs."""

import os
import stat
from pathlib import Path

import pytest

from sasweb.stack import folders


@pytest.fixture
def data(monkeypatch, tmp_path):
    """Return the path of a data folder that does not exist yet."""
    folder = tmp_path / "data"
    monkeypatch.setenv("DATA_DIR", str(folder))
    monkeypatch.setattr(folders, "reachable_by_servers", lambda _path: True)
    folders.data_dir.cache_clear()
    yield folder
    folders.data_dir.cache_clear()


def mode(folder):
    return stat.S_IMODE(folder.stat().st_mode)


def test_new_folder_and_its_new_parents_are_private(tmp_path):
    before = os.umask(0)
    try:
        made = folders.make(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    assert mode(made) == 0o700
    for above in (made.parent, made.parent.parent):
        assert mode(above) & 0o066 == 0  # no other user may read it, or write into it


def test_own_folder_is_made_private_and_reused(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir(0o755)
    (folder / "kept").touch()
    assert folders.make(folder) == folder
    assert mode(folder) == 0o700
    assert (folder / "kept").exists()


def a_link(folder):
    target = folder.with_name("elsewhere")
    target.mkdir(0o700)
    folder.symlink_to(target)
    return f"it is a link to {target}"


def a_file(folder):
    folder.touch()
    return "it is a file"


def open_to_others(folder):
    folder.mkdir()
    folder.chmod(0o777)
    return "other users may write into it (its mode is 777"


def open_to_the_group(folder):
    folder.mkdir()
    folder.chmod(0o770)
    return "other users may write into it (its mode is 770"


@pytest.mark.parametrize("plant", [a_link, a_file, open_to_others, open_to_the_group])
def test_planted_folder_is_refused_and_left_unchanged(tmp_path, plant):
    folder = tmp_path / "planted"
    why = plant(folder)
    before = folder.lstat()
    with pytest.raises(SystemExit) as refused:
        folders.make(folder)
    assert f"{folder} is not used, because {why}" in str(refused.value)
    assert "DATA_DIR=" in str(refused.value)
    assert folder.lstat().st_mode == before.st_mode


def test_folder_of_another_user_is_refused(tmp_path):
    if os.geteuid() == 0:
        folder = tmp_path / "theirs"
        folder.mkdir(0o700)
        os.chown(folder, 1, 1)
    else:
        folder = Path("/usr")
    with pytest.raises(SystemExit, match=r"because it belongs to the user \w+"):
        folders.make(folder)


def test_data_folder_that_is_a_link_is_refused(data):
    (data.parent / "target").mkdir(0o700)
    data.symlink_to(data.parent / "target")
    with pytest.raises(SystemExit, match="because it is a link"):
        folders.make_data_dir()


def test_secrets_are_created_once_and_are_private(data):
    assert folders.secret("a_password") == ""
    made = folders.secret("a_password", make_it=True)
    assert folders.secret("a_password") == folders.secret("a_password", make_it=True) == made
    assert len(made) >= 16
    assert mode(folders.secret_file("a_password")) == 0o600
    assert mode(folders.secret_file("a_password").parent) == 0o700


class TestSockets:
    def test_sockets_lie_in_the_data_folder_if_its_path_is_short(self, data, monkeypatch):
        monkeypatch.setattr(folders, "LONGEST_SOCKET_FOLDER", len(os.fsencode(data / "run")))
        assert folders.make_socket_dir() == folders.socket_dir() == data / "run"

    def test_sockets_lie_in_a_temporary_folder_if_the_path_is_long(self, data, monkeypatch):
        monkeypatch.setattr(folders, "LONGEST_SOCKET_FOLDER", len(os.fsencode(data / "run")) - 1)
        folders.make(data)
        made = folders.make_socket_dir()
        assert made == folders.socket_dir() == (data / "run").readlink()
        assert made.parent != data
        assert mode(made) == 0o700
        assert folders.make_socket_dir() == made  # as long as it is private
        made.chmod(0o777)
        other = folders.make_socket_dir()
        assert other != made
        folders.remove_socket_dir()
        assert not other.exists()
        assert not (data / "run").is_symlink()
        assert made.exists()  # its mode is not private any more
        made.rmdir()


def test_data_folder_that_another_user_could_replace_is_refused(data):
    data.parent.chmod(0o777)
    with pytest.raises(SystemExit, match="other users may rename what lies in"):
        folders.make_data_dir()
    assert not data.exists()


def test_folder_of_the_servers_belongs_to_their_user(tmp_path):
    folder = folders.make(tmp_path / "servers", servers=True)
    assert folder.stat().st_uid == folders.server_uid()
    if folders.server_user():
        with pytest.raises(SystemExit, match="because it belongs to the user nobody"):
            folders.make(folder)


def test_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match=r"cannot be made \(Not a directory\)"):
        folders.make(tmp_path / "file" / "below")


def test_folder_lock_is_exclusive_or_shared(tmp_path):
    with folders.lock(tmp_path), pytest.raises(SystemExit, match="A stack that runs uses"):
        folders.lock(tmp_path)
    shared = [folders.lock(tmp_path, shared=True) for _ in range(2)]
    with pytest.raises(SystemExit):
        folders.lock(tmp_path)
    for lock in shared:
        lock.close()
    folders.lock(tmp_path).close()
