"""Start the sandbox: `python -m sandbox --port 8900 --data DIR`."""

import argparse
import asyncio
import gc
import os
import re
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from pathlib import Path

import uvloop
from aiohttp.web import BaseRequest, Server, StreamResponse

from sandbox.database import Database, LedgerFileError
from sandbox.refusals import Refusal
from sandbox.responses import error_response
from sandbox.server import Sandbox

Handler = Callable[[BaseRequest], Awaitable[StreamResponse]]
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
GRACE_PERIOD = 0.2  # seconds for requests in progress at shutdown


def main() -> int:
    """Run until SIGTERM or SIGINT; return the exit code."""
    options = parse_options()
    os.umask(0o077)  # its letters have customers' addresses, and links to their orders
    try:
        listener = listen_on(options.host, options.port)
        site = os.environ.get("SANDBOX_SITE", f"http://localhost:{listener.getsockname()[1]}")
        sandbox = Sandbox(Database(Path(options.data) / "ledger.sqlite3"), site=site)
        sandbox.webhooks.address = options.webhooks
        sandbox.webhooks.secret = secret("PAYMENT_WEBHOOK_SECRET")
    except (OSError, LedgerFileError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    # The partners' objects only grow in number: keep the collector from visiting all of them often.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)
    uvloop.run(serve(sandbox, listener))
    return 0


def parse_options() -> argparse.Namespace:
    """Read the command line; SANDBOX_PORT and DATA_DIR give defaults."""
    data = Path(os.environ.get("DATA_DIR", ".data")) / "sandbox"
    parser = argparse.ArgumentParser(
        prog="python -m sandbox", description="Run the remote partners as one HTTP server."
    )
    parser.add_argument(
        "--port",
        type=int,
        default=os.environ.get("SANDBOX_PORT", "8900"),
        help="TCP port (default: SANDBOX_PORT or 8900; 0 takes a free one)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address (default: %(default)s)")
    parser.add_argument(
        "--webhooks",
        default=os.environ.get("SANDBOX_WEBHOOKS", ""),
        help="where the payment partner reports to (default: SANDBOX_WEBHOOKS; without: nowhere)",
    )
    parser.add_argument(
        "--data", default=str(data), help="folder of the ledger (default: DATA_DIR/sandbox)"
    )
    return parser.parse_args()


def secret(name: str) -> str:
    """Return a secret of the environment, or of the file that NAME_FILE names; by default the demo's."""
    if path := os.environ.get(f"{name}_FILE"):
        return Path(path).read_text().removesuffix("\n")
    return os.environ.get(name, "whsec_sandbox")


def listen_on(host: str, port: int) -> socket.socket:
    """Return a socket bound to the address; raises OSError with a message that names the port."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(1024)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise OSError(
            f"Cannot listen on port {port} of {host}: {reason}. Stop the process that uses it, or "
            "choose another port by --port or SANDBOX_PORT."
        ) from error
    return listener


async def serve(sandbox: Sandbox, listener: socket.socket) -> None:
    """Answer requests until a signal asks to stop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    host, port = listener.getsockname()[:2]
    is_local = ip_address(host).is_loopback
    sandbox.resume()
    web = Server(by_local_name(sandbox.handle) if is_local else sandbox.handle, access_log=None)
    server = await loop.create_server(web, sock=listener, backlog=1024)
    sys.stdout.write(f"Partners' sandbox: http://{host}:{port}/\n")
    sys.stdout.flush()
    await stop.wait()
    server.close()
    await web.shutdown(GRACE_PERIOD)
    await sandbox.close()


def by_local_name(handle: Handler) -> Handler:
    """Refuse requests to other names than this machine's own.

    Another site's page could have its name lead to this machine, and then read customers' mail.
    """

    async def checked(request: BaseRequest) -> StreamResponse:
        name = re.sub(r":\d*$", "", request.headers.get("Host", "localhost")).lower()
        if name in LOCAL_NAMES:
            return await handle(request)
        message = f"This is not {name!r}, but a sandbox at localhost."
        return error_response(Refusal(421, "other_host", message), None)

    return checked


if __name__ == "__main__":
    sys.exit(main())
