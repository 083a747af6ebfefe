"""The services of `compose.yaml` that run the image."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).with_name("compose.yaml")
IMAGE = "sas"
DEFAULT = re.compile(r"\$\{\w+:-([^}]*)\}")  # of a variable of the environment
USUAL_GRACE = 10.0  # seconds, compose's own


@dataclass(frozen=True, kw_only=True)
class Service:
    """One service that runs the image; `command` is None for the image's own."""

    name: str
    command: list[str] | None
    environment: Mapping[str, str]
    secrets: list[str]
    grace: float
    scale: int
    health: list[str] | None
    once: bool
    outside: bool  # reaches other networks


def load(file: Path = FILE) -> dict[str, Any]:
    """Return the file's content, each variable with its default."""
    content: dict[str, Any] = yaml.safe_load(DEFAULT.sub(r"\1", file.read_text()))
    return content


def services(file: Path = FILE) -> dict[str, Service]:
    """Return the services that run the image, by name."""
    return {
        name: _service(name, definition)
        for name, definition in load(file)["services"].items()
        if definition["image"] == IMAGE
    }


def _service(name: str, definition: Mapping[str, Any]) -> Service:
    return Service(
        name=name,
        command=definition.get("command"),
        environment=definition.get("environment", {}),
        secrets=definition.get("secrets", []),
        grace=float(definition["stop_grace_period"].rstrip("s"))
        if "stop_grace_period" in definition
        else USUAL_GRACE,
        scale=definition.get("scale", 1),
        health=definition["healthcheck"]["test"][1:] if "healthcheck" in definition else None,
        once=definition["restart"] == "no",
        outside="outside" in definition["networks"],
    )
