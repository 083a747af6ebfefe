"""Each kind of process needs no more rights on Redis than docs/run/secure.md gives it."""

import re
import subprocess
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import NoPermissionError, RedisError

from drill.process import free_port
from drill.waiting import wait_for
from orchestration import conf
from orchestration.cluster import leader_election
from orchestration.dead_letters import capture
from orchestration.messaging import queue_depths, queues
from orchestration.models import Attempt, DeadLetter, Worker
from orchestration.workers import jobs
from sasweb import health
from sasweb.stack import embedded
from tests.support.engine import new_task, sweep
from tests.support.serving import serve

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = Path(__file__).parents[4] / "docs" / "run" / "secure.md"


def rules():
    """Return the users of the page, with the test's agent for its agent."""
    (block,) = re.findall(r"```acl\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return re.sub(r">\S+", "nopass", block.replace("payment", "greeter"))


def lines_for(file):
    """Return the lines of a configuration file that the page shows."""
    (block,) = re.findall(rf"```text\n# {file}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return block.splitlines()


@pytest.fixture
def server(tmp_path, settings, monkeypatch):
    """Have a Redis with these users; `server(name)` has this process be that one from then on."""
    monkeypatch.setattr(conf, "INBOX_IDLE_S", 0.05)
    settings.MESSAGE_KEYS = ["a key of thirty-two characters, at least"]
    rights = tmp_path / "users.acl"
    rights.write_text(rules() + "\nuser root on nopass ~* &* +@all\n")
    socket = tmp_path / "redis.sock"
    options = ["--port", "0", "--unixsocket", socket, "--aclfile", rights, "--save", ""]
    process = subprocess.Popen([embedded.redis_program(), *options], stdout=subprocess.DEVNULL)
    root = Redis.from_url(f"unix://root:x@{socket}")

    def become(name):
        settings.REDIS_URL = f"unix://{name}:x@{socket}"
        queues._connection.cache_clear()
        queues._breaker.__init__()
        return Redis.from_url(settings.REDIS_URL)

    try:
        wait_for(lambda: answers(root), "Redis answers", 10)
        become.root = root
        yield become
    finally:
        jobs.close_runtimes()
        process.terminate()
        process.wait(10)
        queues._connection.cache_clear()


def answers(client):
    try:
        return client.ping()
    except RedisError:
        return False


def refused(server):
    return [(line["username"], line["reason"], line["object"]) for line in server.root.acl_log()]


def test_each_kind_of_process_does_its_work_with_its_rights(server):
    server("web")
    new_task()
    queues.ring(queues.SUBMISSION)
    queues.ring(queues.SCHEDULER)
    assert queue_depths.depths([queues.SCHEDULER])[queues.SCHEDULER].messages == 1
    assert health._redis_answers()
    server("engine")
    serve(queues.SUBMISSION)
    server("scheduler")
    serve(queues.SCHEDULER)
    server("agent-greeter")
    serve("greeter")
    server("scheduler")
    serve(queues.SCHEDULER)
    assert Attempt.objects.get().agent.startswith("greeter@")
    server("engine")
    Worker.objects.create(instance="greeter@gone:1-0", queue="greeter", host="gone", pid=1)
    Worker.objects.update(seen_at="2020-01-01T00:00:00Z")
    capture.store(queues.SCHEDULER, b"{}", ValueError("x"), returned=0)
    DeadLetter.objects.update(retry_at="2020-01-01T00:00:00Z")
    sweep(leader_election.acquire("supervisor-1"))
    assert not DeadLetter.objects.exists()
    assert queues.oldest(queues.SCHEDULER)[0] is not None
    assert queues.waiting([queues.SCHEDULER]) == [queues.SCHEDULER]
    assert queues.held_by("greeter@gone:1-0") == {}
    assert refused(server) == []


SECRET = ("lrange", "sas:inbox:greeter", 0, -1)


@pytest.mark.parametrize(
    ("user", "command"),
    [
        ("web", SECRET),
        ("web", ("lrange", "sas:inbox:scheduler", 0, -1)),
        ("web", ("flushall",)),
        ("agent-greeter", ("lpop", "sas:inbox:shipping")),
        ("agent-greeter", ("rpush", "sas:inbox:shipping", "x")),
        ("agent-greeter", ("lpop", "sas:inbox:scheduler")),
        ("agent-greeter", ("del", "sas:at:shipping@here:1-0")),
        ("engine", SECRET),
        ("scheduler", SECRET),
        ("scheduler", ("config", "get", "*")),
        ("scheduler", ("monitor",)),
    ],
)
def test_processes_have_no_more_rights_than_that(server, user, command):
    with pytest.raises(NoPermissionError):
        server(user).execute_command(*command)


def test_users_of_people_replicas_and_sentinels_are_accepted(server):
    admin = server("admin")
    assert admin.execute_command("ACL", "LOAD")
    assert {"admin", "replica", "sentinel"} <= set(server.root.acl_users())
    server("admin").set("sas:inbox:scheduler", "x")
    for command in (("acl", "log"), ("client", "list"), ("flushdb",)):
        server("admin").execute_command(*command)
    assert server.root.dbsize() == 0


def test_replica_copies_its_master_with_the_lines_of_the_page(server, tmp_path):
    asked = dict(line.split() for line in lines_for("redis.conf"))
    assert asked["masteruser"] == "replica"
    server.root.config_set("repl-diskless-sync-delay", 0)
    server.root.set("sas:inbox:scheduler", "x")
    server.root.config_set("bind", "127.0.0.1")
    server.root.config_set("port", port := free_port())
    socket = tmp_path / "replica.sock"
    options = ["--port", "0", "--unixsocket", socket, "--dir", tmp_path, "--save", ""]
    options += ["--replicaof", f"127.0.0.1 {port}"]
    options += ["--masteruser", asked["masteruser"], "--masterauth", asked["masterauth"]]
    replica = subprocess.Popen([embedded.redis_program(), *options], stdout=subprocess.DEVNULL)
    try:
        client = Redis.from_url(f"unix://{socket}")
        wait_for(lambda: answers(client) and has_synced(client), "the replica has synced", 15)
        assert client.get("sas:inbox:scheduler") == b"x"
    finally:
        replica.terminate()
        replica.wait(10)


def has_synced(client):
    return client.info("replication")["master_link_status"] == "up"


OF_A_SENTINEL = [
    ("ping",),
    ("info",),
    ("role",),
    ("multi",),
    ("exec",),
    ("slaveof", "no", "one"),
    ("config", "rewrite"),
    ("client", "kill", "type", "normal"),
    ("client", "setname", "sentinel"),
    ("script", "kill"),
    ("publish", "__sentinel__:hello", "x"),
    ("subscribe", "__sentinel__:hello"),
]
OF_NONE = [
    ("flushall",),
    ("config", "set", "dir", "/"),
    ("get", "sas:inbox:payment"),
    ("acl", "list"),
]


def may(server, user, command):
    return server.root.execute_command("ACL", "DRYRUN", user, *command) == b"OK"


def test_sentinels_may_promote_a_server_and_read_nothing(server):
    assert [command for command in OF_A_SENTINEL if not may(server, "sentinel", command)] == []
    for user in ("sentinel", "replica"):
        assert [command for command in OF_NONE if may(server, user, command)] == []
