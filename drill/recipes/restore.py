"""A restore of the database to an earlier moment, while the partners have gone on."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg2  # type: ignore[import-untyped]

from drill.recipes import Running, recipe
from drill.recipes.postgres import DECLINED
from drill.stack import PROCESSED, Stack
from drill.verdict import ALERTED, left_over
from drill.waiting import wait_for
from sasweb.stack import embedded, folders

ARCHIVED = "SELECT last_archived_wal >= %s FROM pg_stat_archiver"
RECOVERED = "SELECT NOT pg_is_in_recovery()"
TASKS = "SELECT id FROM orchestration_task WHERE workflow = 'process_order' AND reference = ANY(%s)"
FAILED = """
SELECT s.id, s.request FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND s.process_state = 'error'
"""
FEW = 5  # orders that are undone after the moment, and orders that get another card


@recipe
def restored(run: Running, *, lost: int = 60) -> Iterator[None]:
    """Restore a base backup and the archived WAL up to a moment; reconcile; place more orders."""
    stack = run.stack
    with _archiving(stack) as folder:
        yield
        declined = run.place(FEW, card=DECLINED)
        wait_for(lambda: len(stack.sql(ALERTED, declined)) == FEW, "cards are declined", 60)
        wait_for(lambda: stack.count(PROCESSED) > FEW, "some are processed", 60)
        with stack.stopped("work-submission"):
            run.place(2 * FEW)  # tasks only after the moment, of submissions that are older
            ((moment,),) = stack.sql("SELECT clock_timestamp()")
        forgotten = stack.place(lost)
        _act_of_people(stack, declined, run.orders[:FEW])
        run.quiet()
        stack.quiet()
        stopped = _stop(stack)
        _restore(stack, folder, moment)
        assert stack.sql(TASKS, forgotten) == [], "nothing was lost: the moment is too late"
        _reconcile(stack, lost)
        for name in stopped:
            stack.manage("startProcess", name)
        run.place(lost)
        run.quiet()
        ledger = stack.sandbox("/ledger/summary")
        stands = {order: left_over(ledger.get(order, {})) for order in forgotten}
        assert not any(stands.values()), f"of lost orders there stands {stands}"


def _act_of_people(stack: Stack, declined: Sequence[str], cancelled: Sequence[str]) -> None:
    """Give some orders another card, and have others undone."""
    for step, request in stack.sql(FAILED, list(declined)):
        other = json.dumps({**request, "payment_method": "pm_card_visa"})
        _tasks(stack, "resubmit", str(step), "--request", other)
    for (task,) in stack.sql(TASKS, list(cancelled)):
        _tasks(stack, "undo", task, "--force")


def _tasks(stack: Stack, *command: str) -> None:
    stack.run([sys.executable, "manage.py", "tasks", *command, "--reason", "a drill"])


def _reconcile(stack: Stack, lost: int) -> None:
    """Run the command as the documentation says: once to look, once to act; then nothing is left."""
    facts = _run(stack, 1)
    assert len(facts["lost"]) >= lost, f"only {len(facts['lost'])} lost tasks are found"
    assert len(facts["adoptable"]) == 2 * FEW, f"{len(facts['adoptable'])} submissions are matched"
    assert len(facts["undone"]) >= FEW, f"only {len(facts['undone'])} undone tasks are found"
    _run(stack, 0, "--act")
    _run(stack, 0)


def _run(stack: Stack, code: int, *options: str) -> dict[str, Any]:
    command = [sys.executable, "manage.py", "reconcile", "--json", *options]
    done = stack.run(command, check=False)
    assert done.returncode == code, f"{command} ended with {done.returncode}; see {stack.log}"
    result: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{\n") :])
    return result


@contextmanager
def _archiving(stack: Stack) -> Iterator[Path]:
    """Archive WAL and take a base backup; yield the folder of both."""
    folder = stack.folder / "backup"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("wal", "base"):
        folders.make(folder / name, servers=True)
    stack.execute("ALTER SYSTEM SET archive_mode = on")
    stack.execute(f"ALTER SYSTEM SET archive_command = 'cp %p {folder}/wal/%f'")
    _restart(stack)
    _as_server(
        "pg_basebackup", "--pgdata", str(folder / "base"), "--host", str(stack.sockets),
        "--username", "postgres", "--checkpoint", "fast",
    )  # fmt: skip
    yield folder
    stack.execute("ALTER SYSTEM RESET ALL")
    _restart(stack)


def _restart(stack: Stack) -> None:
    stack.manage("stopProcess", "postgres")
    stack.manage("startProcess", "postgres")
    wait_for(stack.answers, "Postgres answers again", 30)


def _as_server(program: str, *arguments: str) -> None:
    """Run a program of Postgres as the server's user."""
    command = [str(embedded.postgres_binaries() / program), *arguments]
    subprocess.run(command, check=True, capture_output=True, **folders.server_identity())


def _stop(stack: Stack) -> list[str]:
    """Stop every process but the servers and the partners; return their names."""
    processes = stack.manage("getAllProcessInfo")
    names = [
        process["name"]
        for process in processes
        if (process["group"], process["statename"]) == ("application", "RUNNING")
        and process["name"] != "sandbox"
    ]
    for name in names:
        stack.manage("stopProcess", name)
    with stack.redis() as client:
        client.flushall()
    return names


def _restore(stack: Stack, folder: Path, moment: object) -> None:
    """Replace the database by the backup, recovered to a moment."""
    ((segment,),) = stack.execute("SELECT pg_walfile_name(pg_switch_wal())")
    wait_for(lambda: stack.sql(ARCHIVED, segment) == [(True,)], "the last WAL is archived", 30)
    stack.manage("stopProcess", "postgres")
    data = stack.folder / "postgres"
    owner = data.stat()
    shutil.rmtree(data)
    (folder / "base").rename(data)
    with (data / "postgresql.auto.conf").open("a") as settings:
        settings.write(
            f"restore_command = 'cp {folder}/wal/%f %p'\nrecovery_target_time = '{moment}'\n"
            "recovery_target_action = 'promote'\n"
        )
    (data / "recovery.signal").touch()
    os.chown(data / "recovery.signal", owner.st_uid, owner.st_gid)
    stack.manage("startProcess", "postgres")

    def recovered() -> bool:
        try:
            return stack.execute(RECOVERED) == [(True,)]
        except psycopg2.Error:
            return False

    wait_for(recovered, "Postgres has recovered", 60)
