"""The servers that a benchmark runs on, and the environment of the systems under test."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.measure import cpu_seconds
from drill.servers import REDIS_SOCKET, Servers
from sasweb.stack import embedded, folders

PEERS_DATABASE = "bench_dbos"


class Testbed(Servers):
    """Postgres, Redis and the sandbox, all on empty data and with full durability."""

    def __init__(self, folder: Path) -> None:
        for name in ("postgres", "redis", "sandbox", "logs"):
            shutil.rmtree(folder / name, ignore_errors=True)
        super().__init__(folder / "logs")
        self.folder = folder

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of every process under test."""
        inherited = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
        return inherited | {
            "DATA_DIR": str(self.folder),
            "SANDBOX_PORT": str(self.sandbox_port),
            "SANDBOX_URL": f"http://127.0.0.1:{self.sandbox_port}",
            "PEER_DATABASE_URL": f"postgresql://postgres@/{PEERS_DATABASE}?host={self.sockets}",
            "REDIS_SOCKET": str(self.sockets / REDIS_SOCKET),
        }

    def start(self) -> None:
        """Start the servers and create the databases."""
        self.start_postgres()
        self.start_redis()
        self.start_sandbox(self.folder / "sandbox")
        for name in (embedded.DATABASE, PEERS_DATABASE):
            self.create_database(name)

    def run(
        self, command: Sequence[str], environment: Mapping[str, str], seconds: float | None = None
    ) -> str:
        """Run a command to its end; return its output. Raise RuntimeError if it fails."""
        done = subprocess.run(
            command,
            cwd=folders.PROJECT,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command[-4:])} failed:\n{done.stderr[-2000:]}")
        return done.stdout

    def clear(self) -> None:
        """Empty Redis and the sandbox's ledger, so that every system starts the same."""
        self.sandbox("/ledger", method="DELETE")
        with self.redis() as client:
            client.flushall()

    def calls(self) -> int:
        """Return the number of calls with effect in the sandbox's ledger."""
        return int(self.sandbox("/healthz")["entries"])

    def checkpoint(self) -> None:
        """Write out the changes of earlier runs, so that they cost the next run nothing."""
        self.execute("CHECKPOINT")

    def vacuum(self, database: str) -> None:
        """Vacuum the database of a stopped system, for the same reason."""
        self.execute("VACUUM (ANALYZE)", database)

    def cpu(self) -> dict[str, float]:
        """Return the servers' seconds of CPU."""
        return {name: cpu_seconds(server.pid) for name, server in self.running.items()}


@contextmanager
def testbed(folder: Path) -> Iterator[Testbed]:
    """Run the servers in `folder`, which becomes this process's data folder."""
    for name in ("DATABASE_URL", "REDIS_URL"):
        os.environ.pop(name, None)
    os.environ["DATA_DIR"] = str(folder)
    folders.data_dir.cache_clear()
    folders.make_data_dir()
    running = Testbed(folder)
    try:
        running.start()
        yield running
    finally:
        running.stop()
