"""The users on Redis: what each kind of process may do there. `docs/run/secure.md` explains them.

Only the standard library, as `make_secrets.py` imports it.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256

AGENTS = ("inventory", "payment", "shipping", "courier", "notification")
APART = ("payment",)  # agents of compose.yaml with processes, and a user, of their own
RIGHTS = "-@all +@read +@write +@transaction +@connection -@dangerous +info"
RINGS = "%W~sas:inbox:* ~sas:ringing:* ~rq:*"
WEB = f"resetchannels {RINGS} {RIGHTS}"
ENGINE = (
    "resetchannels ~sas:inbox:submission ~sas:inbox:status.* ~sas:inbox:push ~sas:inbox:alerts "
    "~sas:inbox:audit %R~sas:inbox:scheduler %W~sas:inbox:* ~sas:ringing:* ~sas:kept %R~sas:at:* ~rq:* "
    f"{RIGHTS}"
)
SCHEDULER = f"resetchannels ~sas:inbox:scheduler {RINGS} {RIGHTS}"
WORKER = f"resetchannels ~sas:* ~rq:* {RIGHTS}"  # of every queue, and of management commands
ADMIN = "allkeys allchannels +@all"


def of_agents(names: Sequence[str]) -> str:
    """Return the rule of a process that serves agents."""
    own = (
        f"~sas:inbox:{name} %W~sas:inbox:scheduler ~sas:ringing:{name} ~sas:ringing:scheduler "
        f"~sas:taken:{name} ~sas:reports:{name} ~sas:at:{name}@*"
        for name in names
    )
    keys = dict.fromkeys(" ".join(own).split())
    return f"resetchannels {' '.join(keys)} ~rq:* {RIGHTS}"


RULES: Mapping[str, str] = {
    "web": WEB,
    "engine": ENGINE,
    "scheduler": SCHEDULER,
    **{f"agent-{name}": of_agents([name]) for name in APART},
    "agents": of_agents([name for name in AGENTS if name not in APART]),
    "worker": WORKER,
    "admin": ADMIN,
}


def acl(passwords: Mapping[str, str]) -> str:
    """Return the content of `aclfile`; it has digests of the passwords."""
    lines = [
        f"user {name} on #{sha256(passwords[name].encode()).hexdigest()} {rule}"
        for name, rule in RULES.items()
    ]
    return "\n".join(["user default off", *lines, ""])
