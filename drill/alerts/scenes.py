"""The scenes of the drill: in each, the condition of some alerts holds."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress

import psycopg2  # type: ignore[import-untyped]

from drill.alerts.watch import Drill
from drill.recipes.partners import scripted
from drill.run import prepare
from drill.waiting import pause, wait_for

USUAL_ORDERS = 40
PAYMENT = {"partner": "payment", "action": "*", "probability": 1, "fault": "status"}
Scene = Callable[[Drill], AbstractContextManager[None]]
SCENES: list[tuple[str, Scene, tuple[str, ...]]] = []  # name, context, alerts


def scene(*alerts: str) -> Callable[[Callable[[Drill], Iterator[None]]], Scene]:
    """Register a context in which the condition of these alerts holds."""

    def register(function: Callable[[Drill], Iterator[None]]) -> Scene:
        made = contextmanager(function)
        SCENES.append((function.__name__, made, alerts))
        return made

    return register


@scene(
    "SasRequestsBudgetBurnsFast", "SasRequestsBudgetBurnsSlowly", "SasMetricsAway", "SasMachineAway"
)
def database_away(drill: Drill) -> Iterator[None]:
    """Stop Postgres while customers look at the shop."""
    with drill.stack.stopped("postgres"):
        statuses = [drill.get("/") for _ in range(20)]
        assert max(statuses) >= 500, statuses
        pause(20)  # five minutes, shortened, and a scrape
    wait_for(drill.stack.answers, "Postgres answers", 30)
    yield


# The next two go on through all others.
@scene("SasTransactionOld")
def transaction_left_open(drill: Drill) -> Iterator[None]:
    """Leave a transaction open in a session without time-outs."""
    connection = drill.stack.connect()
    try:
        connection.cursor().execute("SELECT 1")
        yield
    finally:
        connection.close()


@scene("SasOutboxOld", "SasStatusBudgetBurnsFast", "SasStatusBudgetBurnsSlowly")
def receiver_gone(drill: Drill) -> Iterator[None]:
    """Stop the worker of the shop's status messages while orders end."""
    with drill.stack.stopped("work-status.shop"):
        drill.stack.place(USUAL_ORDERS)
        yield


ONGOING = 3  # the first scenes, which may last; they end last


@scene("SasNoWorker", "SasAuditOld")
def audit_worker_gone(drill: Drill) -> Iterator[None]:
    """Stop the audit's worker, with the last audit hours ago."""
    drill.stack.run([sys.executable, "manage.py", "audit", "--no-ledgers"], check=False)
    with drill.stack.stopped("work-audit"):
        drill.stack.sql(
            "UPDATE orchestration_auditrun SET started_at = started_at - interval '4 hours'"
        )
        yield


@scene("SasAuditViolation")
def order_changed_by_hand(drill: Drill) -> Iterator[None]:
    """Change an order's total in the database, and run the audit."""
    drill.stack.sql(
        "UPDATE orders_order SET total = total + 1 WHERE id = (SELECT id FROM orders_order LIMIT 1)"
    )
    drill.stack.run([sys.executable, "manage.py", "audit", "--no-ledgers"], check=False)
    yield


@scene("SasNoLeader")
def supervisors_gone(drill: Drill) -> Iterator[None]:
    """Stop both supervisors."""
    with drill.stack.stopped("supervisor"):
        yield


@scene("SasNoSweep")
def housekeeper_hangs(drill: Drill) -> Iterator[None]:
    """Freeze the housekeeper, and renew its lease in its place, as a process whose sweep hangs does."""
    with drill.stack.frozen("housekeeper"):
        drill.stack.sql(
            "UPDATE orchestration_lease SET expires_at = clock_timestamp() + interval '1 minute'"
            " WHERE name = 'housekeeper'"
        )
        yield


@scene("SasRedisAway")
def redis_away(drill: Drill) -> Iterator[None]:
    """Stop Redis."""
    with drill.stack.stopped("redis"):
        yield


@scene("SasRedisMemory")
def redis_full(drill: Drill) -> Iterator[None]:
    """Leave Redis little memory."""
    with drill.stack.redis() as client:
        client.config_set("maxmemory", str(int(client.info()["used_memory"] / 0.85)))
        try:
            yield
        finally:
            client.config_set("maxmemory", "0")


@scene("SasConnectionsFew")
def connections_taken(drill: Drill) -> Iterator[None]:
    """Open connections until few are left."""
    with ExitStack() as opened:
        while drill.stack.count("SELECT count(*) FROM pg_stat_activity") < 175:
            opened.callback(drill.stack.connect().close)
        yield


@scene("SasLockWaits", "SasWebSlow")
def table_locked(drill: Drill) -> Iterator[None]:
    """Lock what the shop's pages read, again and again, while sessions wait for it."""
    lock = "LOCK TABLE orders_product IN ACCESS EXCLUSIVE MODE"
    over: list[bool] = []

    def hold() -> None:
        while not over:
            with suppress(psycopg2.Error):
                drill.stack.sql(f"{lock}; SELECT pg_sleep(1.5)")

    def look() -> None:
        while not over:
            drill.get("/")

    with ThreadPoolExecutor(9) as pool:
        for job in (*[hold] * 6, *[look] * 3):
            pool.submit(job)
        try:
            yield
        finally:
            over.append(True)


@scene("SasWindowFull")
def narrow_window(drill: Drill) -> Iterator[None]:
    """Have a slow partner, and a window of two."""
    drill.stack.policy(window=2, time_allowed=10, call_timeout=8)
    drill.stack.sandbox("/faults", {"faults": [], "latency": {"*": 3}}, "PUT")
    drill.stack.place(80)
    try:
        yield
    finally:
        prepare(drill.stack)


@scene("SasOrdersBudgetBurnsFast", "SasOrdersBudgetBurnsSlowly", "SasCriticalAlertOpen")
def payment_refuses(drill: Drill) -> Iterator[None]:
    """Have each payment be refused: steps stop in error, and the breaker stays closed."""
    with scripted(drill.stack, {**PAYMENT, "status": 422}):
        drill.stack.place(USUAL_ORDERS)
        yield


@scene("SasCircuitNotClosed")
def payment_down(drill: Drill) -> Iterator[None]:
    """Have the payment service fail at each call."""
    with scripted(drill.stack, {**PAYMENT, "status": 500}):
        drill.stack.place(USUAL_ORDERS)
        yield
