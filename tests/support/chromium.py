"""The browser of the tests: a Chromium that is installed, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PLACES = (
    "chromium-headless-shell",  # the same engine without a window's parts: a third less processor time
    "chromium",
    "chromium-browser",
    "google-chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


def program() -> str:
    """Return the browser that CHROMIUM names, or the first that is there."""
    named = os.environ.get("CHROMIUM")
    path = named or next(filter(None, map(shutil.which, PLACES)), None)
    assert path, (
        "Chromium is needed: sudo apt-get install chromium-headless-shell, or brew install --cask "
        "chromium, or name a Chromium or Chrome by CHROMIUM=/path"
    )
    return path


@contextmanager
def launched() -> Iterator[Browser]:
    """Give a browser that has no window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=FLAGS)
        yield browser
        browser.close()
