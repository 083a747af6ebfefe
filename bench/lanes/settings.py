"""The project's settings with the lanes' queues in place of the shop's.

`LANES` is a JSON object: the initial policy of each lane's agent, by name.
"""

import json
import os

from sasweb.settings import *  # noqa: F403
from sasweb.settings import INSTALLED_APPS, RQ_QUEUES

INSTALLED_APPS = [*INSTALLED_APPS, "bench.lanes"]
LANES = json.loads(os.environ["LANES"])
SERVICE_URL = os.environ["SERVICE_URL"]
ISOLATED = bool(os.environ["ISOLATED"])
RQ_QUEUES = dict.fromkeys(
    ("submission", "scheduler", "alerts", "audit", *LANES), RQ_QUEUES["scheduler"]
)
SILENCED_SYSTEM_CHECKS = ["orchestration.E004"]  # the shop's queues are not served here
