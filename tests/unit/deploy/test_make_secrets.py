"""The secrets of compose: for the containers' users to read, in a folder for its owner alone."""

import os
import re
from fnmatch import fnmatch
from hashlib import sha256
from urllib.parse import urlsplit

import pytest

from deploy import compose, make_secrets, needs, redis_users
from deploy.installations import by_compose
from sasweb.stack.folders import PROJECT


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
    assert first.keys() == compose.load()["secrets"].keys() | {"redis_url_admin"}  # for people
    make_secrets.main()
    assert {file.name: file.read_text() for file in folder.iterdir()} == first


def test_files_that_a_former_run_closed_are_opened(folder):
    make_secrets.main()
    for file in folder.iterdir():
        file.chmod(0o600)
    make_secrets.main()
    assert {mode(file) for file in folder.iterdir()} == {0o644}


def test_each_user_of_redis_has_its_address_and_its_line(folder):
    make_secrets.main()
    lines = (folder / "redis_users.acl").read_text().splitlines()
    assert lines[0] == "user default off"
    for user, rule in redis_users.RULES.items():
        address = urlsplit((folder / f"redis_url_{user}").read_text())
        digest = sha256(address.password.encode()).hexdigest()
        assert address.username == user
        assert f"user {user} on #{digest} {rule}" in lines
    assert len(lines) == 1 + len(redis_users.RULES)


def test_rules_are_those_of_the_page():
    """The page's rules are the ones that tests hold processes to."""
    page = (PROJECT / "docs" / "run" / "secure.md").read_text()
    (block,) = re.findall(r"```acl\n(.*?)```", page, re.DOTALL)
    lines = dict(re.findall(r"^user (\S+) on >\S+ (.*)$", block, re.MULTILINE))
    assert {name: lines[name] for name in redis_users.RULES if name in lines} == {
        name: rule for name, rule in redis_users.RULES.items() if name != "agents"
    }
    assert lines.keys() - redis_users.RULES.keys() == {"replica", "sentinel"}


def test_users_may_reach_the_inboxes_of_their_queues():
    for process in by_compose():
        url = dict(process.secrets).get("REDIS_URL", "")
        rule = redis_users.RULES.get(url.removeprefix("redis_url_"), "")
        for queue in process.queues(list(needs.OF_QUEUE)):
            keys = [key.removeprefix("~") for key in rule.split() if key.startswith("~")]
            assert any(fnmatch(f"sas:inbox:{queue}", key) for key in keys), (process.name, queue)
