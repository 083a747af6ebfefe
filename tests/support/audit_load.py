"""How long the audit of many orders takes: `python -m tests.support.audit_load [100000]`, run by hand.

Writes the orders into a database of its own on the tests' servers, serves their ledgers by a
sandbox, and runs the command.
"""

import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
os.environ.setdefault("SANDBOX_PORT", "8977")
PIECE = 5_000


def main() -> None:
    import django

    django.setup()
    from django.db import connection

    from drill.servers import FAST, servers

    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with servers(*FAST) as running, tempfile.TemporaryDirectory() as folder:
        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
        began = time.monotonic()
        _fill(count, Path(folder) / "ledger.sqlite3")
        _say(f"{count:,} orders written in {time.monotonic() - began:.0f} s")
        try:
            running.sandbox_port = int(os.environ["SANDBOX_PORT"])
            running.start_sandbox(Path(folder), 120)
            _audit()
        finally:
            connection.close()


def _fill(count: int, path: Path) -> None:
    from django.db import connection

    from sandbox.database import Database
    from sandbox.ledger import INSERT
    from tests.support.audit_rows import no_route, orders

    alert = no_route()
    partners = {"notification": "mail"}
    database = Database(path)
    with database.transaction():
        stock = {"mug": count}
        database.execute(INSERT, _row(1, "inventory", "stock", detail=stock))
        number, refs = 1, {}
        for start in range(0, count, PIECE):
            made = orders(min(PIECE, count - start), alert)
            made.write()
            rows = []
            for agent in ("inventory", "payment", "shipping", "notification"):
                for entry in made.ledger[agent]:
                    number += 1
                    rows.append(_entry(number, partners.get(agent, agent), entry, refs))
            database.executemany(INSERT, rows)
    database.close()
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
    return _row(
        *(number, partner, entry.kind),
        key=entry.key,
        order=entry.reference,
        ref=ref,
        amount=entry.amount,
        detail=detail,
        parent=parent,
    )


def _row(
    number, partner, kind, *, key=None, order=None, ref=None, amount=None, detail=None, parent=None
):
    http = 402 if kind == "none" else 200
    currency = "eur" if amount else None
    return [
        *(number, time.time(), partner, kind, key, order, ref, parent, amount, currency),
        *(http, kind, "f", None, detail and json.dumps(detail), 1),
    ]


def _audit() -> None:
    from orchestration.assurance.audit import runner

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    result = runner.run("load", report=lambda line: _say(f"{time.monotonic() - began:6.1f} {line}"))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert result is not None
    _say(f"{result.tasks:,} tasks in {result.seconds:.1f} s: {len(result.violations)} violations")
    _say(f"memory: {before // 1024} MB before, {after // 1024} MB at most")
    for violation in result.violations[:10]:
        _say(f"{violation.invariant} {violation.reference}: {violation.problem}")


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    main()
