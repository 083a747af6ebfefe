"""The project's settings with this application, and the addresses of its partners."""

import os

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.stack.recipes"]
ROOT_URLCONF = "tests.stack.recipes.urls"
PARTNER_URL = os.environ.get("PARTNER_URL", "http://127.0.0.1:9")
BANK_URL, CARRIER_URL, COURIER_URL = f"{PARTNER_URL}/bank", f"{PARTNER_URL}/a", f"{PARTNER_URL}/b"
MAIL_URL = f"{PARTNER_URL}/mail"
BANK_SECRET = b"of the bank"
