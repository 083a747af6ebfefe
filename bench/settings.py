"""The project's settings with the benchmark's workflow in place of the shop's queues."""

from sasweb.settings import *  # noqa: F403
from sasweb.settings import INSTALLED_APPS, RQ_QUEUES

INSTALLED_APPS = [*INSTALLED_APPS, "bench.engine"]
RQ_QUEUES = dict.fromkeys(("submission", "scheduler", "audit", "caller"), RQ_QUEUES["scheduler"])
SILENCED_SYSTEM_CHECKS = ["orchestration.E004"]  # the shop's queues are not served here
