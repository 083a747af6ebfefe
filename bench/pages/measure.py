"""Measures the time to first byte of each page, for one browser."""

import http.client
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import quantiles
from urllib.parse import quote

from django.db import connection

from bench import console
from orchestration.console.queries.task_columns import COLUMNS
from orchestration.models import Incident, Operation, Policy, Task
from orders.models import Order

STATES = ("pending", "processing", "processed", "error", "undoing", "undone")
LIMIT = 0.3  # seconds to the first byte that a page may take, for 95 of 100 requests


@dataclass(frozen=True, kw_only=True)
class Server:
    """The web server, a session's cookie, and the CPU that it and its database have used."""

    port: int
    cookie: str
    cpu: Callable[[], float]


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page and its expected status."""

    name: str
    path: str
    status: int = 200


@dataclass(frozen=True, kw_only=True)
class Timing:
    """The result for one page: seconds to the first byte, CPU seconds of one request, size.

    `cpu` is of the web server and the database. Unlike the times, other load of the machine hardly
    changes it.
    """

    page: Page
    p50: float
    p95: float
    worst: float
    cpu: float
    kilobytes: float
    status: int

    @property
    def good(self) -> bool:
        """Return whether the status is right and the time within the limit."""
        return self.status == self.page.status and self.p95 <= LIMIT


def pages() -> Iterator[Page]:
    """Yield every page of the dashboard, with every filter, and the lists of the admin."""
    for key in ("1h", "24h", "7d"):
        yield Page(name=f"overview, {key}", path=f"/ops/?range={key}")
    yield Page(name="tasks", path="/ops/tasks/")
    yield Page(name="tasks, last page", path="/ops/tasks/?last=1")
    middle = str(_middle())
    yield Page(name="tasks, from the middle", path=f"/ops/tasks/?older={middle}")
    for query in _searches():
        yield Page(name=f"tasks, {query}", path=f"/ops/tasks/?q={quote(query)}")
        yield Page(name=f"tasks, {query}, last page", path=f"/ops/tasks/?q={quote(query)}&last=1")
        yield Page(
            name=f"tasks, {query}, from the middle",
            path=f"/ops/tasks/?q={quote(query)}&older={middle}",
        )
    yield from _sorted_pages()
    for state in STATES:
        if (
            task := Task.objects.filter(state=state)
            .order_by("-id")
            .values_list("id", flat=True)
            .first()
        ):
            yield Page(name=f"a task: {state}", path=f"/ops/tasks/{task}/")
    if task := Task.objects.filter(state="processed").values_list("id", flat=True).first():
        yield Page(name="undo of a task", path=f"/ops/tasks/{task}/undo/")
    incident = Incident.objects.order_by("-open_tasks").values_list("id", flat=True).first()
    for name, path in (
        ("incidents", "incidents/"),
        *((f"incidents, {state}", f"incidents/?state={state}") for state in ("new", "resolved")),
        ("incidents, by last", "incidents/?sort=last"),
        ("the largest incident, all that it hit", f"incidents/{incident}/?who=ever"),
        ("the largest incident", f"incidents/{incident}/"),
        ("operations", "operations/"),
        ("agents", "agents/"),
        ("system", "system/"),
        ("workflows", "workflows/"),
        ("audit", "audit/"),
    ):
        yield Page(name=name, path=f"/ops/{path}")
    for operation in Operation.objects.order_by("-items").values_list("id", flat=True)[:1]:
        yield Page(name="the largest operation", path=f"/ops/operations/{operation}/")
    policy = Policy.objects.order_by("agent").values_list("agent", flat=True).last()
    for name in ("", *(f"orchestration/{model}/" for model in ADMIN), "orders/order/"):
        yield Page(name=f"admin: {name.strip('/') or 'index'}", path=f"/admin/{name}")
    yield Page(name="admin: a policy", path=f"/admin/orchestration/policy/{policy}/change/")


ADMIN = (
    *("task", "step", "statestore", "attempt", "event", "alert", "incident", "incidenthit"),
    "taskrollup",
)


def _searches() -> Sequence[str]:
    """Return queries for each filter alone and for combinations; some have no results."""
    label, reference, contact = Task.objects.order_by("-id").values_list(
        "label", "reference", "contact"
    )[1000]
    return [
        *(f"state:{state}" for state in STATES),
        *(f"is:{trouble}" for trouble in ("overdue", "retrying", "held")),
        "with:background", "workflow:process_order", "step:create_shipment", "agent:payment",
        "agent:notification",
        "error:code_3", "error:timeout", "error:nothing_like_it", "attempts:>2", "attempts:>100",
        "value:>400", "value:<2", "value:>1000000", "after:2h", "before:20d", "after:10d before:9d",
        "karen", f"karen {_last_name()}", _last_name(), "TRK1", label.replace("-", "").lower(),
        label, label[:3], reference, reference[:6], contact, "unknown-text",
        "state:error step:capture_payment error:code_1", "state:error agent:shipping after:5d",
        "state:processed value:>450", "state:processed value:>499 before:20d",
        "state:pending agent:payment", "state:error attempts:>2 before:25d", f"{contact} state:error",
        "state:undone after:1d", "state:processed error:timeout", "agent:payment value:>499",
        "-state:processed", "-state:error -state:processed", "-agent:payment", "-error:timeout is:overdue",
        "state:error -step:create_shipment", "-(state:error agent:payment) value:>499",
        "state:error OR is:overdue", "agent:payment OR agent:shipping", "error:(code_1 OR code_2 OR timeout)",
        "(state:error OR is:retrying) -agent:payment attempts:>2", "state:undoing OR value:<2",
        "step:create_shipment value:>400", "error:code_1 is:overdue", "workflow:process_order agent:shipping",
        f"incident:{Incident.objects.order_by('-open_tasks').values_list('id', flat=True)[0]}",
    ]  # fmt: skip


def _last_name() -> str:
    name = Order.objects.order_by("id").values_list("name", flat=True)[4]
    return name.split()[-1].lower()


def _sorted() -> Iterator[tuple[str, Sequence[str]]]:
    """Yield searches and the columns that they are sorted by: any, if few enough tasks match."""
    any_number = [name for name, column in COLUMNS.items() if column.walk]
    for query in ("", "-state:processed", "state:error OR is:overdue OR is:retrying",
                  "-agent:payment -state:processed", "step:create_shipment"):  # fmt: skip
        yield query, any_number
    for query in ("is:overdue OR is:retrying", "state:undoing OR state:pending -is:overdue",
                  "state:error error:code_3 -agent:payment"):  # fmt: skip
        yield query, list(COLUMNS)


def _sorted_pages() -> Iterator[Page]:
    for query, columns in _sorted():
        for order in (*columns, *(f"-{column}" for column in columns)):
            asked = quote(f"{query} sort:{order}".strip())
            yield Page(name=f"sorted, {query or 'all'}, {order}", path=f"/ops/tasks/?q={asked}")


def _middle() -> object:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM orchestration_task WHERE created_at >= (SELECT min(created_at) +"
            " (max(created_at) - min(created_at)) / 2 FROM orchestration_task)"
            " ORDER BY created_at LIMIT 1"
        )
        return cursor.fetchone()[0]


def measure(server: Server, page: Page, rounds: int) -> Timing:
    """Request a page `rounds` times, after two requests that fill caches."""
    times, size, status, before = [], 0, 0, 0.0
    for number in range(rounds + 2):
        if number == 2:
            before = server.cpu()
        asked = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        try:
            began = time.perf_counter()
            asked.request("GET", page.path, headers={"Cookie": server.cookie})
            response = asked.getresponse()  # returns after the head of the answer
            took = time.perf_counter() - began
            size, status = len(response.read()), response.status
        finally:
            asked.close()
        if number >= 2:
            times.append(took)
        if took > 10:
            break  # too slow to continue
    cpu = (server.cpu() - before) / len(times) if times else took
    times = times or [took]
    return Timing(
        page=page,
        p50=quantiles(times, n=2)[0] if times[1:] else times[0],
        p95=quantiles(times, n=20, method="inclusive")[18] if times[1:] else times[0],
        worst=max(times),
        cpu=cpu,
        kilobytes=size / 1024,
        status=status,
    )


def table(timings: Sequence[Timing]) -> str:
    """Return the figures as a Markdown table, in milliseconds."""
    rows = []
    for timing in timings:
        figures = [1000 * seconds for seconds in (timing.p50, timing.p95, timing.worst, timing.cpu)]
        cells = [f"{figure:.0f}" for figure in (*figures, timing.kilobytes)]
        rows.append([timing.page.name.replace("|", "\\|") + _mark(timing), *cells])
    return console.table(["page", "p50 ms", "p95 ms", "worst ms", "CPU ms", "KB"], rows)


def _mark(timing: Timing) -> str:
    if timing.status != timing.page.status:
        return f" **(status {timing.status})**"
    return "" if timing.good else " **slow**"
