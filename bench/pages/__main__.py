"""`python -m bench.pages`: the time to first byte of every page of the dashboard at a million tasks.

Keeps its database in DATA_DIR/pages (several GB), for later runs.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import filled
from bench.console import progress
from bench.measure import cpu_seconds
from drill.process import Process, free_port
from drill.waiting import wait_for
from sasweb.stack import folders

FOLDER = folders.data_dir() / "pages"


def main() -> int:
    """Fill the database if it is empty, measure, print the table; return 1 if a page is slow."""
    options = parse_options()
    with filled.database(FOLDER, fresh=options.fresh):
        cookie = _prepare(options.tasks, options.failures)
        from bench.pages.measure import Server, measure, pages, table

        with web() as (port, cpu):
            server = Server(port=port, cookie=cookie, cpu=cpu)
            timings = []
            for page in pages():
                if options.only in page.name and not (options.skip and options.skip in page.name):
                    timings.append(measure(server, page, options.rounds))
                    one = timings[-1]
                    mark = "" if one.good else "!! "
                    progress(
                        f"{one.p95 * 1000:6.0f} ms {one.cpu * 1000:5.0f} CPU  {mark}{page.name}"
                    )
    sys.stdout.write(table(timings) + "\n")
    slow = [one.page.name for one in timings if not one.good]
    progress(f"{len(timings)} pages, {len(slow)} slow or with a wrong status")
    return 1 if slow else 0


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.pages", description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000_000, help="to fill it with")
    parser.add_argument("--failures", type=int, default=200_000, help="number of them in error")
    parser.add_argument("--rounds", type=int, default=20, help="requests of each page")
    parser.add_argument("--only", default="", help="measure only pages whose name contains this")
    parser.add_argument("--skip", default="", help="omit pages whose name contains this")
    parser.add_argument(
        "--fresh", action="store_true", help="delete the database and fill it again"
    )
    return parser.parse_args()


def _prepare(tasks: int, failures: int) -> str:
    """Fill the database; return a superuser's session cookie."""
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.test import Client

    from bench.pages.seed import seed
    from orchestration.cluster import heartbeat, leader_election
    from orchestration.models import Task

    call_command("collectstatic", interactive=False, verbosity=0)
    if not Task.objects.exists():
        seed(tasks, failures, progress)
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
    process = Process(command, FOLDER / "web.log")
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


if __name__ == "__main__":
    sys.exit(main())
