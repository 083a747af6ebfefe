"""How the processes of a stack are called."""

SERVERS = {"postgres", "redis"}
QUEUES = (
    "submission", "scheduler", "inventory", "payment", "shipping", "notification", "status.shop",
    "alerts", "audit", "push",
)  # fmt: skip
SERVED_BESIDE = ("courier",)  # by the process of another queue
COPIES = 2  # of each process: what several of a kind do to each other shows


def copies(name: str) -> tuple[str, ...]:
    """Return the names of the processes of a kind, such as "work-payment"."""
    return tuple(f"{name}-{number}" for number in range(1, COPIES + 1))


WORKERS = tuple(name for queue in QUEUES for name in copies(f"work-{queue}"))
SUPERVISORS = copies("supervisor")
HOUSEKEEPERS = copies("housekeeper")
LEADERS = (*SUPERVISORS, *HOUSEKEEPERS)  # one of each kind leads


def processes_named(name: str) -> tuple[str, ...]:
    """Return the processes of a kind, or the one process of that name."""
    several = copies(name)
    return several if several[0] in (*WORKERS, *LEADERS) else (name,)
