"""What a process takes from its environment, as it starts."""

import json
import os
import subprocess
import sys

from sasweb.stack.folders import PROJECT

KEY, OLD = "pQ3v-Zk8sW1_tYx6LmB0rNc5HgFd7JaUeOi2TqRz9wXyVbCn", "an old one"
LOOK = """
import json, logging
from django.conf import settings
from django.core.signing import Signer
logging.getLogger("sasweb").error("a line")
(old,) = settings.SECRET_KEY_FALLBACKS
print(json.dumps([settings.SECURE_HSTS_SECONDS, Signer().unsign(Signer(key=old).sign("x"))]))
"""


def test_first_weeks_of_https_and_a_key_that_is_replaced():
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PROCESS"},
        "HTTPS": "1", "HSTS_SECONDS": "3600", "SECRET_KEY": KEY, "SECRET_KEY_FALLBACKS": OLD,
        "DJANGO_SETTINGS_MODULE": "sasweb.settings", "LOG_FORMAT": "json",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", LOOK],
        cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [3600, "x"]
    (line,) = [json.loads(text) for text in done.stderr.splitlines() if "a line" in text]
    assert line["process"] == "shell"  # its command, where the environment gives no name


def start(command, **environment):
    """Run a command of manage.py with these variables alone; return how it ended."""
    names = {"PATH", "HOME", "TEST_DATA_DIR", "DATA_DIR", "LD_LIBRARY_PATH"}
    usual = {name: value for name, value in os.environ.items() if name in names}
    return subprocess.run(
        [sys.executable, "manage.py", *command], cwd=PROJECT, env={**usual, **environment},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_process_that_signs_nothing_starts_without_the_key(tmp_path):
    production = {"ENVIRONMENT": "production", "DATA_DIR": str(tmp_path)}
    assert "SECRET_KEY is not set" in start(["work", "--help"], **production).stderr
    done = start(["check"], SIGNS="0", **production)
    assert done.returncode == 0, done.stderr


def test_process_that_signs_nothing_is_refused_the_key(tmp_path):
    done = start(["check"], SIGNS="0", SECRET_KEY=KEY, DATA_DIR=str(tmp_path))
    assert "SIGNS" in done.stderr
    assert done.returncode


def test_process_without_the_key_fails_to_sign(tmp_path):
    look = "from uuid import UUID\nfrom orders.lifecycle import access\naccess.link(UUID(int=1))"
    done = start(["shell", "--no-imports", "-c", look], SIGNS="0", DATA_DIR=str(tmp_path))
    assert "SECRET_KEY" in done.stderr
    assert done.returncode
