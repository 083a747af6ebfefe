"""The project's settings with the sabotage app."""

from sasweb.settings import *  # noqa: F403
from sasweb.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.stack.sabotage.apps.Saboteur"]
