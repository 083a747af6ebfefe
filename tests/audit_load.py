"""How long the audit of many orders takes: `python -m tests.audit_load [100000]`, run by hand.

Writes the orders into a database of its own on the tests' servers, serves their ledgers by a
sandbox, and runs the command.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
os.environ.setdefault("SANDBOX_PORT", "8977")
PIECE = 5_000


def main() -> None:
    import django

    django.setup()
    from django.db import connection

    from tests.servers import servers, wait_for

    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with servers(), tempfile.TemporaryDirectory() as folder:
        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
        began = time.monotonic()
        _fill(count, Path(folder) / "journal.jsonl")
        _say(f"{count:,} orders written in {time.monotonic() - began:.0f} s")
        port = os.environ["SANDBOX_PORT"]
        command = [sys.executable, "-m", "sandbox", "--port", port, "--data", folder]
        sandbox = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            wait_for(lambda: _answers(f"http://127.0.0.1:{port}/healthz"), "the sandbox", 120)
            _audit()
        finally:
            sandbox.terminate()
            sandbox.wait(20)
            connection.close()


def _fill(count: int, journal: Path) -> None:
    from django.db import connection

    from tests.audit_rows import no_route, orders

    alert = no_route()
    partners = {"notification": "mail"}
    with journal.open("w") as file:
        file.write('["sandbox",1]\n')
        stock = {"mug": count}
        file.write(json.dumps(_line(1, "inventory", "stock", detail=stock)) + "\n")
        number, refs = 1, {}
        for start in range(0, count, PIECE):
            made = orders(min(PIECE, count - start), alert)
            made.write()
            lines = []
            for agent in ("inventory", "payment", "shipping", "notification"):
                for entry in made.ledger[agent]:
                    number += 1
                    lines.append(_entry(number, partners.get(agent, agent), entry, refs))
            file.write("".join(json.dumps(line) + "\n" for line in lines))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _entry(number, partner, entry, refs):
    detail = [[sku, count] for sku, count in entry.detail.items()] if entry.detail else None
    if entry.kind == "none":
        detail = {"code": "declined", "message": "no"}
    if entry.kind == "authorize":
        detail = ["pm_card_visa", {"order": entry.reference}]
    if entry.kind == "send":
        detail = {"to": "a@example.org", "subject": "s", "text": "t"}
    ref, parent = f"x_{number}", None
    thing = (partner, entry.reference)
    if entry.kind in {"reserve", "authorize", "book", "send"}:
        refs[thing] = ref
        parent = refs.get(("inventory", entry.reference)) if entry.kind == "book" else None
    elif entry.kind == "refund":
        parent = refs[thing]
    elif entry.kind != "none":
        ref = refs[thing]
    return _line(
        *(number, partner, entry.kind),
        key=entry.key,
        order=entry.reference,
        ref=ref,
        amount=entry.amount,
        detail=detail,
        parent=parent,
    )


def _line(
    number, partner, kind, *, key=None, order=None, ref=None, amount=None, detail=None, parent=None
):
    http = 402 if kind == "none" else 200
    currency = "eur" if amount else None
    return [
        *("e", number, time.time(), partner, kind, key, order, ref, parent, amount, currency),
        *(http, kind, "f", None, detail, 1),
    ]


def _audit() -> None:
    from orchestration import audit

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    result = audit.run("load", report=lambda line: _say(f"{time.monotonic() - began:6.1f} {line}"))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert result is not None
    _say(f"{result.tasks:,} tasks in {result.seconds:.1f} s: {len(result.violations)} violations")
    _say(f"memory: {before // 1024} MB before, {after // 1024} MB at most")
    for one in result.violations[:10]:
        _say(f"{one.invariant} {one.reference}: {one.trouble}")


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=2) as response:  # noqa: S310 - ours
            return bool(response.status == 200)
    except OSError:
        return False


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    main()
