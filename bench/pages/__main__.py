"""`python -m bench.pages`: every page of the dashboard at a million tasks, to its first byte.

Keeps its database in DATA_DIR/pages (several GB), so that a second run need not fill it again.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import filled
from bench.filled import say
from bench.measure import cpu_seconds
from sasweb.stack import folders

FOLDER = folders.data_dir() / "pages"


def main() -> int:
    """Fill the database if it is not there, measure, print the table; return 1 if a page is slow."""
    options = parse_options()
    with filled.database(FOLDER, fresh=options.fresh):
        made = _prepare(options.tasks, options.failures)
        from bench.pages.measure import Server, measure, pages, table

        with web() as (port, cpu):
            server = Server(port=port, cookie=made, cpu=cpu)
            timings = []
            for page in pages():
                if options.only in page.name and not (options.skip and options.skip in page.name):
                    timings.append(measure(server, page, options.rounds))
                    one = timings[-1]
                    mark = "" if one.good else "!! "
                    say(f"{one.p95 * 1000:6.0f} ms {one.cpu * 1000:5.0f} CPU  {mark}{page.name}")
    sys.stdout.write(table(timings) + "\n")
    slow = [one.page.name for one in timings if not one.good]
    say(f"{len(timings)} pages, {len(slow)} not as they should be")
    return 1 if slow else 0


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.pages", description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000_000, help="how many to fill it with")
    parser.add_argument("--failures", type=int, default=200_000, help="how many of them in error")
    parser.add_argument("--rounds", type=int, default=20, help="requests of each page")
    parser.add_argument("--only", default="", help="only pages whose name contains this")
    parser.add_argument("--skip", default="", help="not those whose name contains this")
    parser.add_argument("--fresh", action="store_true", help="forget the database and fill it anew")
    return parser.parse_args()


def _prepare(tasks: int, failures: int) -> str:
    """Return a superuser's session cookie, with the database filled."""
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.test import Client

    from bench.pages.seed import seed
    from orchestration import leader, presence
    from orchestration.models import Task

    call_command("collectstatic", interactive=False, verbosity=0)
    if not Task.objects.exists():
        seed(tasks, failures, say)
    leader.acquire("bench")
    presence.report("scheduler")
    user, _ = User.objects.get_or_create(username="bench", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return f"sessionid={client.cookies['sessionid'].value}"


@contextmanager
def web() -> Iterator[tuple[int, Callable[[], float]]]:
    """Run the web server as `make run` does, on a port of its own."""
    from drill.stack import free_port
    from drill.waiting import wait_for

    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "sasweb.wsgi", "--bind", f"127.0.0.1:{port}"]
    command += ["--workers", "1", "--threads", "8", "--timeout", "120"]
    with (FOLDER / "web.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folders.PROJECT)
    try:
        wait_for(lambda: _answers(port), "the web server answers", 60)
        yield port, lambda: cpu_seconds(process.pid) + _database_cpu()
    finally:
        process.terminate()
        process.wait(20)


def _database_cpu() -> float:
    """Return what the database server has used, all its processes; 0 where it is elsewhere."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = cursor.fetchone()[0]
    try:
        status = Path(f"/proc/{backend}/stat").read_text()
    except OSError:
        return 0.0
    # workers of parallel queries end with these, and are then the postmaster's to account for
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
