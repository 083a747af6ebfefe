"""The project's settings, with one worker that cannot start."""

import os

from sasweb.settings import *  # noqa: F403

if os.environ.get("PROCESS", "").startswith("work-audit"):
    raise RuntimeError("the audit's worker cannot start")
