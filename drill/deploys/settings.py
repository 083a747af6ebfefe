"""The project's settings, with another version of the shop's workflow (DRILL_DEPLOY says which)."""

from sasweb.settings import *  # noqa: F403
from sasweb.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "drill.deploys"]
