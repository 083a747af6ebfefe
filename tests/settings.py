"""The project's own settings, with data of their own and a workflow that has nothing to do with orders."""

import os

from sasweb.stack import folders

# Real servers, apart from the demo's, and for each of several test processes its own. TEST_DATA_DIR
# lets two runs go on side by side.
worker = os.environ.pop("PYTEST_XDIST_WORKER", "")  # processes that a test starts are not workers
if worker or not os.environ.get("DATA_DIR"):
    inherited = os.environ.get("DATA_DIR")  # by a worker, from the process that started it
    folder = inherited or os.environ.get("TEST_DATA_DIR") or str(folders.data_dir() / "tests")
    os.environ["DATA_DIR"] = f"{folder}-{worker}" if worker else folder
    os.environ.setdefault("TEMPLATE_DIR", f"{folder}-template")
    folders.data_dir.cache_clear()
    folders.make_data_dir()
    folders.make_socket_dir()  # its name is part of the servers' addresses
# tests let weeks pass: those of the stock declare its schedule themselves
os.environ["STOCK_READ_EVERY"] = "0"
os.environ.setdefault("SECRET_KEY", "for tests only: nothing outside them is signed with it")

from sasweb.settings import *  # noqa: E402, F403
from sasweb.settings import INSTALLED_APPS, LOGGING  # noqa: E402

INSTALLED_APPS = [*INSTALLED_APPS, "tests.greeting"]
# Tests of functions declare their agents themselves: the application is not installed.
TASKS = {
    "default": {
        "BACKEND": "orchestration.functions.backend.WorkflowBackend",
        "QUEUES": ["default", "mail"],
    }
}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # logins by the hundred
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
LOGGING["loggers"]["orchestration"] = {"level": "INFO"}
# static files are found where they lie: none are collected for the tests
WHITENOISE_AUTOREFRESH = WHITENOISE_USE_FINDERS = True
