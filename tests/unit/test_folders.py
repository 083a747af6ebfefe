"""A stack uses only folders that are its own: a user who can write into one decides what it runs."""

import os
import stat
from pathlib import Path

import pytest

from sasweb.stack import folders


@pytest.fixture
def data(monkeypatch, tmp_path):
    """Have a data folder of our own, with nothing in it yet."""
    folder = tmp_path / "data"
    monkeypatch.setenv("DATA_DIR", str(folder))
    monkeypatch.setattr(folders, "reachable_by_servers", lambda _path: True)
    folders.data_dir.cache_clear()
    yield folder
    folders.data_dir.cache_clear()


def mode(folder):
    return stat.S_IMODE(folder.stat().st_mode)


def test_a_folder_is_made_closed_to_others_and_so_is_what_was_missing_above_it(tmp_path):
    before = os.umask(0)
    try:
        made = folders.make(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    assert mode(made) == 0o700
    for above in (made.parent, made.parent.parent):
        assert mode(above) & 0o066 == 0  # no other user may read it, or write into it


def test_one_that_is_ours_is_closed_and_used_again(tmp_path):
    folder = tmp_path / "ours"
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
def test_what_is_planted_is_refused_with_the_reason_and_left_as_it_is(tmp_path, plant):
    folder = tmp_path / "planted"
    why = plant(folder)
    before = folder.lstat()
    with pytest.raises(SystemExit) as refused:
        folders.make(folder)
    assert f"{folder} is not used, because {why}" in str(refused.value)
    assert "DATA_DIR=" in str(refused.value)
    assert folder.lstat().st_mode == before.st_mode


def test_what_belongs_to_another_user_is_refused(tmp_path):
    if os.geteuid() == 0:
        folder = tmp_path / "theirs"
        folder.mkdir(0o700)
        os.chown(folder, 1, 1)
    else:
        folder = Path("/usr")
    with pytest.raises(SystemExit, match=r"because it belongs to the user \w+"):
        folders.make(folder)


def test_a_data_folder_that_is_a_link_is_refused(data):
    (data.parent / "target").mkdir(0o700)
    data.symlink_to(data.parent / "target")
    with pytest.raises(SystemExit, match="because it is a link"):
        folders.make_data_dir()


def test_secrets_are_made_once_and_for_us_alone(data):
    assert folders.secret("a_password") == ""
    made = folders.secret("a_password", make_it=True)
    assert folders.secret("a_password") == folders.secret("a_password", make_it=True) == made
    assert len(made) >= 16
    assert mode(folders.secret_file("a_password")) == 0o600
    assert mode(folders.secret_file("a_password").parent) == 0o700


class TestSockets:
    def test_they_lie_in_the_data_folder_where_its_path_is_short(self, data, monkeypatch):
        monkeypatch.setattr(folders, "LONGEST_SOCKET_FOLDER", len(os.fsencode(data / "run")))
        assert folders.make_socket_dir() == folders.socket_dir() == data / "run"

    def test_otherwise_in_a_new_folder_of_a_name_that_nobody_knows_and_it_goes(
        self, data, monkeypatch
    ):
        monkeypatch.setattr(folders, "LONGEST_SOCKET_FOLDER", len(os.fsencode(data / "run")) - 1)
        folders.make(data)
        made = folders.make_socket_dir()
        assert made == folders.socket_dir() == (data / "run").readlink()
        assert made.parent != data
        assert mode(made) == 0o700
        assert folders.make_socket_dir() == made  # as long as it is ours
        made.chmod(0o777)
        other = folders.make_socket_dir()
        assert other != made
        folders.remove_socket_dir()
        assert not other.exists()
        assert not (data / "run").is_symlink()
        assert made.exists()  # not ours to remove
        made.rmdir()


def test_a_data_folder_that_another_user_could_replace_is_refused(data):
    data.parent.chmod(0o777)
    with pytest.raises(SystemExit, match="other users may rename what lies in"):
        folders.make_data_dir()
    assert not data.exists()


def test_what_belongs_to_the_servers_user_is_theirs_alone(tmp_path):
    folder = folders.make(tmp_path / "servers", servers=True)
    assert folder.stat().st_uid == folders.server_uid()
    if folders.server_user():
        with pytest.raises(SystemExit, match="because it belongs to the user nobody"):
            folders.make(folder)


def test_what_cannot_be_made_is_said_in_a_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match=r"cannot be made \(Not a directory\)"):
        folders.make(tmp_path / "file" / "below")


def test_a_folder_is_locked_by_one_and_shared_by_many(tmp_path):
    with folders.lock(tmp_path), pytest.raises(SystemExit, match="A stack that runs uses"):
        folders.lock(tmp_path)
    shared = [folders.lock(tmp_path, shared=True) for _ in range(2)]
    with pytest.raises(SystemExit):
        folders.lock(tmp_path)
    for one in shared:
        one.close()
    folders.lock(tmp_path).close()
