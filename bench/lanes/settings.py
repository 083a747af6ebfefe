"""The project's settings with the lanes beside the shop's agents.

`LANES` is a JSON object: the initial policy of each lane's agent, by name.
"""

import json
import os

from sasweb.settings import *  # noqa: F403
from sasweb.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "bench.lanes"]
LANES = json.loads(os.environ["LANES"])
SERVICE_URL = os.environ["SERVICE_URL"]
ISOLATED = bool(os.environ["ISOLATED"])
