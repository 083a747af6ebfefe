"""Redis: stopped, wiped, frozen, slow, lossy, or full of foreign messages."""

import os
import pickle
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

from drill import proxy
from drill.process_names import QUEUES
from drill.proxy import Spoil
from drill.recipes import Running, recipe
from drill.servers import REDIS_SOCKET
from drill.waiting import pause, wait_for


class _Trap:
    """Runs a command when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.mark}",)


@recipe
def redis_restarted(run: Running, *, forgets: bool = False) -> Iterator[None]:
    """Restart Redis; with `forgets`, delete its files before."""
    stack = run.stack
    stack.manage("stopProcess", "redis")
    if forgets:
        command = shlex.split(stack.configuration["program:redis"]["command"])
        folder = Path(command[command.index("--dir") + 1])
        for file in folder.rglob("*.*"):
            file.unlink()
    stack.manage("startProcess", "redis")
    wait_for(stack.redis_answers, "Redis answers", 20)
    yield


@recipe
def redis_wiped(run: Running, *, times: int = 3) -> Iterator[None]:
    """Delete everything in Redis several times."""
    for _ in range(times):
        with run.stack.redis() as client:
            client.flushall()
        pause(0.5)
    yield


@recipe
def redis_away(run: Running, *, more: int = 20) -> Iterator[None]:
    """Stop Redis while the fault lasts; orders are accepted nevertheless."""
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
    """Suspend Redis: it accepts connections and answers none."""
    pid = run.stack.signal("redis", signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@recipe
def redis_spoiled(run: Running, **spoil: object) -> Iterator[None]:
    """Delay, lose or repeat commands by a proxy: see `Spoil`."""
    socket = run.stack.sockets / REDIS_SOCKET
    spoil = Spoil(**spoil)  # type: ignore[arg-type]
    if spoil.act == "repeat":
        spoil.chosen = proxy.is_push
    moved = socket.with_name(f"{REDIS_SOCKET}.real")
    with proxy.behind(socket, moved, spoil, proxy.redis_command):
        with run.stack.redis() as client:
            client.client_kill_filter(_type="normal", skipme=True)
        yield
        wait_for(
            lambda: not spoil.act or spoil.struck,
            "a command is spoiled",
            20,
        )


@recipe
def redis_garbage(run: Running, *, kind: str) -> Iterator[None]:
    """Push foreign, corrupt or pickled messages to every inbox and every queue."""
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
    assert not mark.exists(), "a message was unpickled"
