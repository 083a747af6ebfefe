"""The real nginx with `deploy/nginx`, before a web server of this machine: for measurements and checks."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from drill.process import Process, free_port
from drill.waiting import wait_for

CONFIGURATION = Path(__file__).with_name("nginx")
UPSTREAM = "upstream {name} {{ server 127.0.0.1:{port}; }}\n"


def program() -> str:
    """Return the path of nginx; raise SystemExit with what to install."""
    path = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if not path:
        raise SystemExit("nginx is needed (Debian: apt-get install nginx-light).")
    return path


def command(folder: Path, *more: str) -> list[str]:
    """Return nginx's command for the configuration that `configure` wrote to a folder."""
    files = ["-p", str(folder), "-c", str(folder / "conf" / "nginx.conf")]
    return [program(), *files, "-e", "stderr", *more]


def upstreams(web_port: int, shop_port: int | None = None) -> str:
    """Return where the web servers are; without a port of the shop's, one serves everything."""
    ports = {"web": web_port, "shop": shop_port or web_port}
    return "".join(UPSTREAM.format(name=name, port=port) for name, port in ports.items())


def configure(
    folder: Path, *, port: int, web_port: int, shop_port: int | None = None, proto: str = "$scheme"
) -> None:
    """Write the configuration to a folder; only where nginx listens, and the web servers, are changed.

    With `proto` "https" it is as if TLS ended here.
    """
    shutil.copytree(CONFIGURATION, folder / "conf", dirs_exist_ok=True)
    listen = folder / "conf" / "listen.conf"
    text = listen.read_text().replace("listen 8080", f"listen 127.0.0.1:{port}")
    listen.write_text(text.replace("$scheme", proto))
    (folder / "conf" / "upstream.conf").write_text(upstreams(web_port, shop_port))
    (folder / "conf" / "inside.conf").write_text("")  # its port is one for all
    folder.chmod(0o711)  # root's nginx gives its processes to another user
    subprocess.run(command(folder, "-t", "-q"), check=True)


@contextmanager
def proxy(
    folder: Path, web_port: int, *, shop_port: int | None = None, proto: str = "$scheme"
) -> Iterator[int]:
    """Run nginx, in an empty folder, before the web servers at their ports; yield its own port."""
    port = free_port()
    folder.mkdir(parents=True)
    configure(folder, port=port, web_port=web_port, shop_port=shop_port, proto=proto)
    log = folder / "nginx.log"
    process = Process(command(folder), log)

    def ready() -> bool:
        assert process.poll() is None, log.read_text()
        with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    try:
        wait_for(ready, f"nginx has started; see {log}", 10)
        yield port
    finally:
        process.end()
