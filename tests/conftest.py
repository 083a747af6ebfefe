import gc
import os
import socket
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from drill import template
from drill.servers import FAST, servers
from sasweb.stack import folders
from tests import order

pytest_plugins = ["orchestration.testing.plugin"]

# A busy machine must not fail a property: how long an example takes says nothing about it.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

# Going through all collected tests for garbage, again and again, would take a fifth of the processor time.
gc.disable()


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="leave out what takes long")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Put the tests in order; with `--quick`, leave out those that take long."""
    if config.getoption("quick"):
        slow = [item for item in items if not order.is_quick(item.nodeid)]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if order.is_quick(item.nodeid)]
    items.sort(key=lambda item: order.key(item.nodeid))


def pytest_collection_finish():
    """From here on collect garbage, but look for none in what stays until the end."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Have all that needs a browser run in one process, and of the others each file."""
    return Scheduling(config, log)


class Scheduling(LoadFileScheduling):
    def _split_scope(self, nodeid):
        return "browser" if order.folder(nodeid) == "browser" else super()._split_scope(nodeid)


@pytest.fixture(scope="session")
def django_db_keepdb():
    """On this process's own server the test database is there, migrated already."""
    return not os.environ.get("DATABASE_URL")


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_keepdb):
    """Before pytest-django looks for the test database, there has to be a server."""
    with folders.lock(folders.make_data_dir()):
        if django_db_keepdb:
            template.copy_into(folders.data_dir())
        with servers(*FAST):
            yield


@pytest.fixture
def hanging_redis(settings, tmp_path):
    """Have a Redis that accepts connections and says nothing; call it for how many there were."""
    address = str(tmp_path / "redis.sock")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen(64)
        server.setblocking(False)
        settings.REDIS_URL = f"unix://{address}"
        accepted = []

        def connections():
            with suppress(BlockingIOError):
                while True:
                    accepted.append(server.accept()[0])
            return len(accepted)

        yield connections
        connections()
        for connection in accepted:
            connection.close()
        del settings.REDIS_URL


@pytest.fixture(scope="session", autouse=True)
def _quick_flush():
    """Empty the database quickly after a test that commits: see `tests.support.emptying`."""
    from django.test import TransactionTestCase

    from tests.support.emptying import FirstRows

    def empty(case):
        if "first_rows" in known:
            known["first_rows"].restore()
        else:
            flush(case)
            known["first_rows"] = FirstRows()

    known = {}
    flush = TransactionTestCase._fixture_teardown
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", empty)
        yield


@pytest.fixture(autouse=True)
def _clean_redis(request):
    """Each test that uses the database starts with an empty Redis."""
    if request.node.get_closest_marker("django_db"):
        request.getfixturevalue("django_db_setup")
        from orchestration.messaging import queues

        queues.connection().flushdb()


@pytest.fixture(autouse=True)
def _patient_transaction(request):
    """Let a test that runs in a transaction hold it: Postgres ends one that is idle for some seconds."""
    mark = request.node.get_closest_marker("django_db")
    if mark and not mark.kwargs.get("transaction"):
        request.getfixturevalue("db")
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
