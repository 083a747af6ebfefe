"""docs/understand/one-order.md against an order that runs through the shop, the engine and the partners."""

import re
import sys
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest

from orchestration import conf, registry
from orchestration.models import Task
from orchestration.workers import jobs
from tests.support.engine import staff
from tests.support.sandbox import process, send
from tests.support.shop import AGENTS, buy, products

PAGE = Path(__file__).parents[3] / "docs" / "understand" / "one-order.md"
ROW = re.compile(r"^\| (\d+) \| \S+ \| `([\w/]+)\.py::([\w.]+)`", re.MULTILINE)
COMPREHENSION = re.compile(r"<\w+(comp|expr)>")

pytestmark = pytest.mark.django_db(transaction=True)


def documented():
    """Return the code of each row's function, in the order of the rows."""
    codes = []
    for number, (row, path, name) in enumerate(ROW.findall(PAGE.read_text()), 1):
        assert int(row) == number
        function = import_module(path.replace("/", "."))
        for part in name.split("."):
            function = getattr(function, part)
        while hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        codes.append(function.__code__)
    return codes


class Calls(list):
    """The calls of some functions in their order, and those calls that go back to an earlier one."""

    def __init__(self, functions):
        super().__init__()
        self.functions = {code: code.co_qualname for code in functions}
        self.back = []

    @contextmanager
    def noted(self):
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _note(self, frame, event, _):
        code = frame.f_code
        if event != "call":
            return
        if code in self.functions:
            self.append(code)
            if code in above(frame):
                self.back.append(code.co_qualname)
        elif "<locals>" in code.co_qualname and self._part_of(code, above(frame)[1:]):
            self.back.append(code.co_qualname)

    def _part_of(self, code, callers):
        """Return whether one of the functions handed the code on to a function that it has called."""
        return not COMPREHENSION.search(code.co_name) and any(
            caller in self.functions
            and caller.co_filename == code.co_filename
            and code.co_qualname.startswith(f"{caller.co_qualname}.<locals>.")
            for caller in callers
        )


def above(frame):
    """Return the code of a frame's callers, the nearest first."""
    codes = []
    while frame := frame.f_back:
        codes.append(frame.f_code)
    return codes


@pytest.fixture
def partners(monkeypatch, tmp_path):
    with process(tmp_path) as (_, port):
        send(port, "PUT", "/inventory/stock", body={"sku-0": 1})
        for agent in AGENTS:
            monkeypatch.setattr(registry.agents[agent], "base_url", f"http://127.0.0.1:{port}")
        monkeypatch.setattr(conf, "INBOX_IDLE_S", 0.01)  # seconds until a job ends
        yield
        jobs.close_runtimes()


def test_functions_of_one_order_are_called_in_the_documented_order_and_not_back(client, partners):
    staff()
    products()
    calls = Calls(documented())
    with calls.noted():
        order = buy(client, sku_0=1)
        jobs.take_submissions()
        for _ in range(6):  # turns
            jobs.schedule()
            for agent in AGENTS:
                jobs.call_agent(agent)
        jobs.deliver_status("shop")
    assert Task.objects.get(reference=order).state == "processed"
    later = iter(calls)
    missing = [
        f"{number} {name}"
        for number, (function, name) in enumerate(calls.functions.items(), 1)
        if function not in later
    ]
    assert missing == []
    assert calls.back == []
