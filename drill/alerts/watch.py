"""A Prometheus that watches a stack by the rules of deploy/prometheus, their times shortened."""

import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from drill.process import Process, free_port
from drill.stack import Stack
from drill.waiting import wait_for
from sasweb.stack import folders

RULES = folders.PROJECT / "deploy/prometheus"
FASTER = 20
SECONDS = {"m": 60, "h": 3600, "d": 86400}
FIRING = 'ALERTS{alertstate="firing"}'


def shortened(rules: str) -> str:
    """Return rules whose times, in `for` and in windows, are a twentieth."""

    def shorter(match: re.Match[str]) -> str:
        return f"{match[1]}{int(match[2]) * SECONDS[match[3]] // FASTER}s"

    rules = re.sub(r"interval: \d+s", "interval: 1s", rules)
    return re.sub(r"(for: |\[)(\d+)([mhd])", shorter, rules)


class Drill:
    """A stack, and a Prometheus that watches it."""

    def __init__(self, stack: Stack, program: str) -> None:
        self.stack = stack
        self.folder = folders.make(stack.folder / "prometheus")
        self.port = free_port()
        stack.python("manage", "applications", "add", "prometheus")
        token = stack.python(
            "manage", "applications", "token", "prometheus",
            "--label", "drill", "--scope", "metrics:read",
        )  # fmt: skip
        self.token = re.search(r"sas_[\w-]+", token)[0]  # type: ignore[index]
        self.process = Process(
            [program, f"--config.file={self._configured()}", f"--storage.tsdb.path={self.folder}/data",
             f"--web.listen-address=127.0.0.1:{self.port}"],
            self.folder / "prometheus.log",
        )  # fmt: skip
        wait_for(self.up, f"Prometheus has scraped the stack; see {self.folder}", 60)
        # until the first scrape, which may take longer than the shortened `for`, metrics are away indeed
        wait_for(lambda: not self.query(FIRING), "no alert fires any more")
        self.since = time.monotonic()

    def _configured(self) -> Path:
        for path in RULES.glob("*.rules.yaml"):
            (self.folder / path.name).write_text(shortened(path.read_text()))
        configuration = yaml.safe_load((RULES / "prometheus.yaml").read_text())
        configuration["global"] |= {
            "scrape_interval": "2s",
            "scrape_timeout": "2s",
            "evaluation_interval": "1s",
        }
        (job,) = configuration["scrape_configs"]
        job |= {"scheme": "http", "authorization": {"credentials": self.token}}
        job["static_configs"] = [{"targets": [f"127.0.0.1:{self.stack.port}"]}]
        del configuration["alerting"]
        file = self.folder / "prometheus.yaml"
        file.write_text(yaml.safe_dump(configuration))
        return file

    def up(self) -> bool:
        """Return whether the stack was scraped."""
        with suppress(OSError):
            return [sample["value"][1] for sample in self.query("up")] == ["1"]
        return False

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the result of an expression."""
        query = urllib.parse.urlencode({"query": expression})
        address = f"http://127.0.0.1:{self.port}/api/v1/query?{query}"
        with urllib.request.urlopen(address, timeout=10) as response:
            result: list[dict[str, Any]] = json.load(response)["data"]["result"]
        return result

    def fired(self) -> set[str]:
        """Return the alerts that have fired since the stack was first scraped."""
        watched = max(1, int(time.monotonic() - self.since))
        samples = self.query(f"max_over_time({FIRING}[{watched}s])")
        return {sample["metric"]["alertname"] for sample in samples}

    def get(self, path: str) -> int:
        """Send a request to the web server; return the status, 0 for none."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.stack.port}{path}", timeout=30
            ) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0
