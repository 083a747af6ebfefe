"""Applications whose declarations are not loaded."""

import re
from collections.abc import Iterable
from pathlib import Path

from django.apps import apps
from django.conf import settings

from .problem import Problem

DECLARES = re.compile(r"^\s*(from|import)\s+orchestration\.api\b", re.MULTILINE)


def forgotten() -> Iterable[Problem]:
    """Yield the folders of the project that declare workflows, and are not installed."""
    project = getattr(settings, "BASE_DIR", None)
    if not project:
        return
    installed = {Path(config.path).resolve() for config in apps.get_app_configs()}
    for file in sorted(Path(project).glob("*/workflow.py")):
        if file.parent.resolve() not in installed and DECLARES.search(_text(file)):
            name = file.parent.name
            yield Problem(
                "W001",
                f"{name}/workflow.py declares what is not loaded: {name!r} is not in INSTALLED_APPS",
                f'Add "{name}" to INSTALLED_APPS, or remove the file.',
            )


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
