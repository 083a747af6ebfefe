"""The project's settings with the release of the shop's workflow that DRILL_DEPLOY names."""

from sasweb.settings import *  # noqa: F403
from sasweb.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "drill.deploys"]
