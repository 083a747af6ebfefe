"""The web server whose pages are measured, and a superuser's session. Import it after `django.setup()`."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from bench.console import progress
from bench.measure import cpu_seconds
from bench.pages.measure import Server, Timing, measure, pages
from drill.process import Process, free_port
from drill.waiting import wait_for
from orchestration.cluster import heartbeat, leader_election
from sasweb.stack import folders


def timings(rounds: int, is_selected: Callable[[str], bool] = lambda _: True) -> list[Timing]:
    """Measure the pages whose names are wanted, each by a number of requests; report progress."""
    cookie = _signed_in()
    measured = []
    with web() as (port, cpu):
        server = Server(port=port, cookie=cookie, cpu=cpu)
        for page in pages():
            if is_selected(page.name):
                timing = measure(server, page, rounds)
                measured.append(timing)
                mark = "" if timing.good else "!! "
                progress(
                    f"{timing.p95 * 1000:6.0f} ms {timing.cpu * 1000:5.0f} CPU  {mark}{page.name}"
                )
    return measured


def _signed_in() -> str:
    """Return a superuser's session cookie; a leader and a scheduler seem to be at work."""
    call_command("collectstatic", interactive=False, verbosity=0)
    leader_election.acquire("bench")
    heartbeat.report("scheduler")
    user, _ = User.objects.get_or_create(username="bench", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return f"sessionid={client.cookies['sessionid'].value}"


@contextmanager
def web() -> Iterator[tuple[int, Callable[[], float]]]:
    """Run the web server as `make run` does, on a port of its own."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "sasweb.wsgi", "--bind", f"127.0.0.1:{port}"]
    command += ["--workers", "1", "--threads", "8", "--timeout", "120"]
    process = Process(command, folders.data_dir() / "web.log")
    try:
        wait_for(lambda: _answers(port), "the web server answers", 60)
        yield port, lambda: cpu_seconds(process.pid) + _database_cpu()
    finally:
        process.end()


def _database_cpu() -> float:
    """Return seconds of CPU of the database server; 0 if it runs elsewhere."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = cursor.fetchone()[0]
    try:
        status = Path(f"/proc/{backend}/stat").read_text()
    except OSError:
        return 0.0
    # of the postmaster, which accounts for ended workers of parallel queries too
    return cpu_seconds(int(status.rpartition(")")[2].split()[1]))


def _answers(port: int) -> bool:
    import http.client

    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        asked.request("GET", "/livez")
        return asked.getresponse().status == 200
    except OSError:
        return False
    finally:
        asked.close()
