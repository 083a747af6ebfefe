"""Rows read by each statement of a scheduler's turn (EXPLAIN ANALYZE): no more than it returns."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SLACK = 5  # rows: of a table with a handful, all may be looked at
INDEXED = {"Index Scan", "Index Only Scan", "Nested Loop"}


@dataclass(frozen=True, kw_only=True)
class Read:
    """A step of a statement's plan that reads a table or joins: its way, and what it read.

    That is the rows it got and dropped, and the pages.
    """

    statement: str
    way: str
    index: str
    returned: float
    dropped: float
    pages: int

    @property
    def wasteful(self) -> bool:
        """Return whether it read a table whole, or more than it returned."""
        return self.way not in INDEXED or self.dropped > self.returned + SLACK


class Explaining:
    """An execute wrapper of Django: explains each prepared statement, undoes that, and executes it."""

    def __init__(self) -> None:
        self.reads: list[Read] = []

    def __call__(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        """Explain, and execute."""
        if "EXECUTE" not in sql:
            return execute(sql, params, many, context)
        *first, last = re.split(";(?=EXECUTE)", sql)  # the settings, and what prepares, come first
        cursor = context["cursor"].cursor  # the driver's: this must not be looked at in turn
        for statement in first:
            self._explain(cursor, statement, params)
            cursor.execute(statement, params)
        self._explain(cursor, last, params)
        return execute(last, params, many, context)

    def _explain(self, cursor: Any, statement: str, params: Any) -> None:
        if not statement.startswith("EXECUTE"):
            return
        cursor.execute("SAVEPOINT explained")
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", params)
        ((plans,),) = cursor.fetchall()
        cursor.execute("ROLLBACK TO explained; RELEASE explained")
        name = statement.split()[1]
        self.reads += [_read(name, node) for node in _steps(plans[0]["Plan"])]


def explain_turns(agents: Sequence[str], replies: int) -> list[Read]:
    """Take two turns: one claims for `agents`, the other records up to `replies` for each."""
    from django.db import connection

    from orchestration import conf, scheduler
    from orchestration.messaging import queues

    explaining = Explaining()
    with connection.execute_wrapper(explaining):
        scheduler.run_once("bench", [], agents)
        taken = [
            request
            for agent in agents
            for request in queues.take(agent, conf.BATCH_SIZE)[:replies]
            if request != queues.LOOK
        ]
        scheduler.run_once("bench", [_done(raw) for raw in taken], agents)
    return explaining.reads


def _done(raw: bytes) -> bytes:
    """Return the reply to a request, as its agent sends it."""
    from orchestration.database import clock
    from orchestration.messaging.messages import Reply, Request

    request, now = Request.parse(raw), clock.now()
    return Reply(
        step=request.step,
        task=request.task,
        attempt=request.attempt,
        outcome="done",
        result={"id": "x"},
        code="",
        message="",
        tries=1,
        started=now,
        ended=now,
        by="bench",
        generation=request.generation,
        dispatch=request.dispatch,
    ).dump()


def _steps(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the nodes of a plan that were executed, and read a table or join what others read."""
    reads = "Relation Name" in node and "Scan" in node["Node Type"]
    if node["Actual Loops"] and (reads or "Join Type" in node):
        yield node
    for part in node.get("Plans", ()):
        yield from _steps(part)


def _read(statement: str, node: Mapping[str, Any]) -> Read:
    loops = node["Actual Loops"]
    dropped = sum(value for name, value in node.items() if name.startswith("Rows Removed by"))
    return Read(
        statement=statement,
        way=node["Node Type"],
        index=node.get("Index Name", ""),
        returned=node["Actual Rows"] * loops,
        dropped=dropped * loops,
        pages=node["Shared Hit Blocks"] + node["Shared Read Blocks"],
    )
