"""The project's settings with this application."""

from sasweb.settings import *  # noqa: F403
from sasweb.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "drill.flows"]
