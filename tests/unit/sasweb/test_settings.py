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
    (line,) = [json.loads(one) for one in done.stderr.splitlines() if "a line" in one]
    assert line["process"] == "shell"  # its command, where the environment gives no name
