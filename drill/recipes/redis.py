"""Redis: away, wiped, frozen, slow, lossy, or full of foreign things."""

import os
import pickle
import re
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

from drill import proxy
from drill.proxy import Spoil
from drill.recipes import Running, recipe
from drill.stack import REDIS_SOCKET, WORKERS, Stack
from drill.waiting import let_pass, wait_for

QUEUES = tuple(dict.fromkeys(re.sub(r"^work-|-\d$", "", name) for name in WORKERS))
DONE = "SELECT count(*) FROM orchestration_task WHERE state = 'processed' AND reference = ANY(%s)"


class _Trap:
    """Runs a command where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.mark}",)


def answers(stack: Stack) -> bool:
    """Say whether Redis takes commands."""
    try:
        with stack.redis() as client:
            return bool(client.ping())
    except Exception:  # noqa: BLE001 - whatever it says while it starts
        return False


@recipe
def redis_restarted(run: Running, *, forgets: bool = False) -> Iterator[None]:
    """Redis is stopped and started again, with what it kept on disk or without."""
    stack = run.stack
    stack.manage("stopProcess", "redis")
    if forgets:
        command = shlex.split(stack.configuration["program:redis"]["command"])
        folder = Path(command[command.index("--dir") + 1])
        for kept in folder.rglob("*.*"):
            kept.unlink()
    stack.manage("startProcess", "redis")
    wait_for(lambda: answers(stack), "Redis answers", 20)
    yield


@recipe
def redis_wiped(run: Running, *, times: int = 3) -> Iterator[None]:
    """FLUSHALL, again and again."""
    for _ in range(times):
        with run.stack.redis() as client:
            client.flushall()
        let_pass(0.5)
    yield


@recipe
def redis_away(run: Running, *, more: int = 20) -> Iterator[None]:
    """Redis is stopped for as long as the fault lasts; orders are accepted all the same."""
    run.stack.manage("stopProcess", "redis")
    try:
        before = len(run.orders)
        run.place(more)
        assert len(run.orders) == before + more, "orders were not accepted"
        yield
    finally:
        run.stack.manage("startProcess", "redis")


@recipe
def redis_frozen(run: Running) -> Iterator[None]:
    """Redis hangs: it takes connections and answers nobody."""
    pid = run.stack.signal("redis", signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@recipe
def redis_spoiled(run: Running, **spoil: object) -> Iterator[None]:
    """A proxy spoils the commands: see `Spoil`."""
    socket = run.stack.sockets / REDIS_SOCKET
    wanted = Spoil(**spoil)  # type: ignore[arg-type]
    if wanted.act == "repeat":
        wanted.chosen = proxy.is_push
    moved = socket.with_name(f"{REDIS_SOCKET}.real")
    with proxy.behind(socket, moved, wanted, proxy.redis_command) as spoiled:
        with run.stack.redis() as client:
            client.client_kill_filter(_type="normal", skipme=True)
        yield
        wait_for(
            lambda: not spoiled.act or spoiled.struck,
            "a command is spoiled",
            20,
        )


@recipe
def redis_garbage(run: Running, *, kind: str) -> Iterator[None]:
    """Foreign, corrupt or pickled things lie in every inbox and on every queue."""
    mark = run.stack.folder / "unpickled"
    bad: dict[str, list[bytes]] = {
        "foreign": [b"hello", b"[1, 2]", b'{"step": "x"}', b"{}", b"null", b'"look"'],
        "corrupt": [b"", b"\xff\xfe\x00", b'{"step": 1', b"\x00" * 2000, b"9" * 100_000],
        "pickled": [pickle.dumps(_Trap(mark))],
    }
    with run.stack.redis() as client:
        for queue in QUEUES:
            client.rpush(f"sas:inbox:{queue}", *bad[kind])
            job = f"drill-{kind}-{queue}"
            client.hset(f"rq:job:{job}", mapping={"data": bad[kind][0], "created_at": "x"})
            client.rpush(f"rq:queue:{queue}", *bad[kind], job)
    yield
    assert not mark.exists(), "something was unpickled"
