"""The project's settings with the benchmark's workflow in place of the shop's queues."""

import os

from bench.systems import caller
from sasweb.settings import *  # noqa: F403
from sasweb.settings import INSTALLED_APPS, RQ_QUEUES

INSTALLED_APPS = [*INSTALLED_APPS, "bench.engine"]
CALLERS = [caller(number) for number in range(1, int(os.environ.get("AGENTS", "1")) + 1)]
STEPS = int(os.environ.get("STEPS", "3"))  # of a task
RQ_QUEUES = dict.fromkeys(("submission", "scheduler", "audit", *CALLERS), RQ_QUEUES["scheduler"])
SILENCED_SYSTEM_CHECKS = ["orchestration.E004"]  # the shop's queues are not served here
