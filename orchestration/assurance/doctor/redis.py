"""Redis: whether it keeps what is put on it until it is taken."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.core.checks import CheckMessage, Error, Info
from django.core.checks import Warning as Warn

from ...messaging import redis_breaker, server
from .subjects import Subject, Unanswered

OLDEST = 7
FULL = 0.8  # of its memory
Facts = Mapping[str, Any]  # the fields of INFO, and options
IDLE = ("timeout", "tcp-keepalive")  # seconds


def gather() -> Facts:
    """Ask Redis."""
    try:
        return {**server.info(), **server.options(*IDLE)}
    except redis_breaker.Unreachable as error:
        raise Unanswered(f"Redis does not answer: {error}.") from error


subject = Subject(
    "redis",
    gather,
    remedy="Start Redis, and correct REDIS_URL; its user must be allowed to call INFO.",
)


@subject.check
def version(facts: Facts) -> Iterator[CheckMessage]:
    """Check that Redis is new enough; Valkey says by which version of Redis it goes, too."""
    if int(str(facts["redis_version"]).split(".")[0]) < OLDEST:
        yield Error(
            f"Redis is version {facts['redis_version']}; {OLDEST} or later is needed, or Valkey.",
            hint="Upgrade it; nothing on it has to be kept.",
        )


@subject.check
def cluster(facts: Facts) -> Iterator[CheckMessage]:
    """Check that all keys are on one server, as commands name several."""
    if facts.get("cluster_enabled"):
        yield Error(
            "Redis is a cluster, which refuses commands on keys of several slots.",
            hint="Use a single Redis, with a replica and Sentinel if it has to be replaced by itself.",
        )


@subject.check
def replica(facts: Facts) -> Iterator[CheckMessage]:
    """Check that it takes writes."""
    if facts.get("role") != "master":
        yield Error(
            "Redis is a replica: it takes no writes.",
            hint="Name the primary in REDIS_URL, or promote this one (REPLICAOF NO ONE).",
        )


@subject.check
def eviction(facts: Facts) -> Iterator[CheckMessage]:
    """Check that messages are not thrown away for lack of memory."""
    policy = facts.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        kind = Warn if facts.get("maxmemory") else Info
        yield kind(
            f"maxmemory-policy is {policy}: when its memory is full, Redis drops messages. Their steps "
            "expire and are tried again.",
            hint="Set maxmemory-policy to noeviction; a cache belongs on another Redis.",
        )


@subject.check
def memory(facts: Facts) -> Iterator[CheckMessage]:
    """Check that there is memory left for messages."""
    used, most = facts.get("used_memory", 0), facts.get("maxmemory", 0)
    if most and used > FULL * most:
        yield Warn(
            f"Redis uses {used >> 20} of {most >> 20} MiB; once it is full, nothing is sent.",
            hint="Raise maxmemory. If an inbox grows, start workers of its queue (*System* shows them).",
        )


@subject.check
def idle_connections(facts: Facts) -> Iterator[CheckMessage]:
    """Check that connections stay open, and that those of processes that vanished do not."""
    if seconds := int(facts.get("timeout", 0)):
        yield Info(
            f"Redis closes what is idle for {seconds} s (timeout): the next message needs a new connection.",
            hint="CONFIG SET timeout 0, unless clients of others leave connections open.",
        )
    if not int(facts.get("tcp-keepalive", 1)):
        yield Warn(
            "tcp-keepalive is off: what Redis hands to a worker that vanished without a word is lost, and "
            "comes again when it has expired.",
            hint="CONFIG SET tcp-keepalive 60, and the same in redis.conf.",
        )


@subject.check
def persistence(facts: Facts) -> Iterator[CheckMessage]:
    """Check that writing to disk works where it is on; it is not needed."""
    if "err" in {facts.get("rdb_last_bgsave_status"), facts.get("aof_last_write_status")}:
        yield Error(
            "Redis cannot write its file, and may refuse commands until it can.",
            hint="Free disk for it, or correct the rights on its folder; its log has the reason. Or turn its "
            "persistence off.",
        )
    elif not facts.get("aof_enabled"):
        yield Info(
            "Redis has no append-only file: a restart loses what is under way to agents and back. It expires "
            "and is tried again.",
            hint="For shorter delays then: appendonly yes, appendfsync everysec.",
        )
