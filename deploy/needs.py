"""Which process may have which secret: one table, for compose, Kubernetes and systemd.

A secret is a pair: the variable by whose file it is read, and its name among an installation's secrets. The
database's and Redis's addresses have several names, as the shop has its own role and each kind of process
its own user (docs/run/secure.md).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deploy.started import Started

ALL_QUEUES = "worker"  # the Redis user of processes that serve queues of several users
AGENTS = "agents"  # of those that serve several agents
OF_ENGINE = {"submission", "alerts", "audit", "push"}  # and status.…: of the Redis user `engine`
# What a queue's worker reads beside its addresses. Schedulers and agents sign messages, and the letters
# of status.shop have signed links.
OF_QUEUE: Mapping[str, Sequence[str]] = {
    "submission": (),
    "scheduler": ("MESSAGE_KEY",),
    "status.shop": ("SECRET_KEY",),
    "alerts": ("EMAIL_URL",),
    "audit": (),
    "push": (),
    "inventory": ("MESSAGE_KEY",),
    "payment": ("MESSAGE_KEY", "PAYMENT_SECRET_KEY"),
    "shipping": ("MESSAGE_KEY",),
    "courier": ("MESSAGE_KEY",),
    "notification": ("MESSAGE_KEY",),
}
# The other processes, by the first word after manage.py. Housekeepers return messages to their inboxes.
OF_COMMAND: Mapping[str, Sequence[str]] = {
    "supervisor": ("REDIS_URL",),
    "housekeeper": ("MESSAGE_KEY", "REDIS_URL"),
    "migrate": (),
    "grant_shop": (),
    "archive": (),
}
OF_WEB = ("SECRET_KEY", "EMAIL_URL", "REDIS_URL")
OF_HOOKS = ("PAYMENT_WEBHOOK_SECRET",)  # of the web server that takes services' webhooks
OF_PEOPLE = ("SECRET_KEY", "MESSAGE_KEY", "PAYMENT_SECRET_KEY", "EMAIL_URL", "REDIS_URL")


def redis_user(queues: Sequence[str]) -> str:
    """Return the user on Redis of a worker of these queues."""
    users = {_user_of(queue) for queue in queues}
    if len(users) == 1:
        return users.pop()
    return AGENTS if all(name.startswith("agent-") for name in users) else ALL_QUEUES


def _user_of(queue: str) -> str:
    if queue in OF_ENGINE or queue.startswith("status."):
        return "engine"
    return queue if queue == "scheduler" else f"agent-{queue}"


def needed(process: "Started") -> frozenset[tuple[str, str]]:
    """Return the secrets that a process needs, and no other."""
    if process.for_people:
        return _named(OF_PEOPLE, user=ALL_QUEUES)
    if queues := process.queues(list(OF_QUEUE)):
        of_queues = [name for queue in queues for name in OF_QUEUE[queue]]
        return _named([*of_queues, "REDIS_URL"], user=redis_user(queues))
    if process.command[0] == "gunicorn":
        names = OF_WEB if process.serves_shop else (*OF_WEB, *OF_HOOKS)
        return _named(names, user="web", shop=process.serves_shop)
    return _named(OF_COMMAND[process.command[2]], user="engine")


def _named(names: Sequence[str], *, user: str, shop: bool = False) -> frozenset[tuple[str, str]]:
    own = {
        "REDIS_URL": f"redis_url_{user}",
        "DATABASE_URL": "shop_database_url" if shop else "database_url",
    }
    return frozenset((name, own.get(name, name.lower())) for name in (*names, "DATABASE_URL"))


def problems(processes: Sequence["Started"]) -> Iterator[str]:
    """Yield each secret that a process has and should not have, or lacks."""
    for process in processes:
        allowed = needed(process)
        for variable, source in sorted(process.secrets - allowed):
            yield f"{process.name} has {source or 'a file that it is not given'} as {variable or 'nothing'}"
        for variable, source in sorted(allowed - process.secrets):
            yield f"{process.name} lacks {source} as {variable}"
        if process.signs != any(variable == "SECRET_KEY" for variable, _ in allowed):
            yield f"{process.name} has SIGNS={process.signs:d}"
