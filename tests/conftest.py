import socket

import pytest

from tests.servers import servers


@pytest.fixture(scope="session")
def django_db_modify_db_settings():
    """Before pytest-django makes the test database, there has to be a server."""
    with servers():
        yield


@pytest.fixture
def hanging_redis(settings, tmp_path):
    """Have a Redis that accepts connections and says nothing."""
    address = str(tmp_path / "redis.sock")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen(8)
        settings.REDIS_URL = f"unix://{address}"
        yield
        del settings.REDIS_URL


@pytest.fixture(autouse=True)
def _clean_redis(request):
    """Each test that uses the database starts with an empty Redis."""
    if request.node.get_closest_marker("django_db"):
        request.getfixturevalue("django_db_setup")
        from orchestration import queues

        queues.connection().flushdb()
