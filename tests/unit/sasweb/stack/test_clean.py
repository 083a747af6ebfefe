"""`make clean` removes a stack's data folder, and no other folder that DATA_DIR names."""

import subprocess
import sys
from pathlib import Path

from sasweb.stack import folders
from sasweb.stack.folders import PROJECT


def clean(folder: object, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sasweb.stack.clean"],
        env={"DATA_DIR": str(folder), "HOME": str(home), "PYTHONPATH": str(PROJECT)},
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )


def test_data_of_a_stack_is_removed(tmp_path):
    data = tmp_path / "data"
    (data / "secrets").mkdir(parents=True)
    (data / "supervisord.conf").touch()
    (tmp_path / "neighbour").touch()
    assert f"Removed {data}" in clean(data, tmp_path).stdout
    assert [path.name for path in tmp_path.iterdir()] == ["neighbour"]
    again = clean(data, tmp_path)
    assert (again.returncode, again.stdout) == (0, f"Nothing to remove: {data} does not exist\n")


def test_data_in_use_or_behind_a_link_is_kept(tmp_path):
    data, home = tmp_path / "data", tmp_path / "home"
    for folder in (data, home):
        folder.mkdir()
    (data / "supervisord.conf").touch()
    with folders.lock(data):
        refused = clean(data, home)
    assert refused.returncode == 1
    assert f"A stack that runs uses {data}" in refused.stderr
    (tmp_path / "link").symlink_to(data)
    assert "it is a link" in clean(tmp_path / "link", home).stderr
    assert (data / "supervisord.conf").exists()


def test_home_folder_and_its_parents_are_kept(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    for folder in (home, tmp_path, home / ".."):
        (folder / "supervisord.conf").touch()  # a stack did run there
        refused = clean(folder, home)
        assert refused.returncode == 1
        assert f"it holds {home}" in refused.stderr
    assert home.exists()


def test_folder_with_other_files_is_kept(tmp_path):
    pictures, home = tmp_path / "pictures", tmp_path / "home"
    pictures.mkdir()
    home.mkdir()
    refused = clean(pictures, home)
    assert "it does not look like the data of `make run`" in refused.stderr
    assert pictures.exists()
