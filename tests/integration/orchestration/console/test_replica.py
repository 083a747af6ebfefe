"""Pages that read from a real standby of the database."""

import shutil

import pytest
from django.db import DEFAULT_DB_ALIAS, connections, router

from drill.ha.postgres import Server
from drill.waiting import wait_for
from orchestration.database import replica
from sasweb.stack import folders
from tests.support.engine import new_task
from tests.support.operators import operator
from tests.support.page import listed, page

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def standby(monkeypatch):
    """Start a standby of the tests' database, and have pages read from it."""
    server = Server(folders.data_dir() / "standby")
    server.run("pg_basebackup", "--host", str(folders.socket_dir()), "--username=postgres",
               "--pgdata", str(server.data), "--write-recovery-conf", "--no-sync",
               "--checkpoint=fast")  # fmt: skip
    here = connections.settings[DEFAULT_DB_ALIAS]
    options = {**here["OPTIONS"], "host": str(server.sockets), "target_session_attrs": "any"}
    monkeypatch.setitem(connections.settings, replica.ALIAS, {**here, "OPTIONS": options})
    monkeypatch.setattr(router, "routers", [replica.Router()])
    monkeypatch.setattr(replica, "_rest", replica._Rest())
    try:
        server.start()
        # Django's tests keep others from connecting to a database that they have not set up
        connections[replica.ALIAS].connect()
        yield server
    finally:
        connections[replica.ALIAS].close()
        del connections[replica.ALIAS]
        server.stop()
        shutil.rmtree(server.data)


def test_lists_are_read_from_the_replica_and_say_how_far_it_is_behind(standby):
    client = operator()

    def get():
        return client.get("/ops/tasks/")

    first = new_task(reference="first")
    wait_for(lambda: listed(get()) == ["first"], "the replica has the task", 20)
    assert "data-behind" not in get().text
    standby.execute("SELECT pg_wal_replay_pause()")
    second = new_task(reference="second")
    wait_for(lambda: "data-behind" in get().text, "the page says that it is old", 20)
    assert int(page(get()).only("[data-behind]")["data-behind"]) > 1
    assert listed(get()) == ["first"]
    assert 'data-problem="' in get().text  # no process leads, by the primary
    for address in ("/ops/", "/ops/audit/", "/ops/incidents/"):
        assert "data-behind" in client.get(address).text
    # what is acted on is read where it is written
    for task in (first, second):
        assert "data-behind" not in client.get(f"/ops/tasks/{task.id}/").text
    standby.execute("SELECT pg_wal_replay_resume()")
    wait_for(lambda: listed(get()) == ["second", "first"], "the replica has caught up", 20)


def test_primary_is_read_while_the_replica_is_away(standby):
    client = operator()
    new_task(reference="first")
    wait_for(lambda: listed(client.get("/ops/tasks/")) == ["first"], "the replica has the task", 20)
    standby.stop()
    new_task(reference="second")
    answer = client.get("/ops/tasks/")
    assert (answer.status_code, listed(answer)) == (200, ["second", "first"])
    with pytest.raises(replica.Away), replica.reading():
        pass
