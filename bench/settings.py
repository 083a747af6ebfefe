"""The project's settings with the benchmark's workflow beside the shop's."""

import os

from bench.systems import caller
from sasweb.settings import *  # noqa: F403
from sasweb.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "bench.engine"]
CALLERS = [caller(number) for number in range(1, int(os.environ.get("AGENTS", "1")) + 1)]
STEPS = int(os.environ.get("STEPS", "3"))  # of a task
FLOWS = "FLOWS" in os.environ  # whether what `bench.flows` runs is declared
