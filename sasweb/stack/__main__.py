"""`python -m sasweb.stack`: the whole system on this machine, until Ctrl-C. `make run` calls it."""

import argparse
import io
import ipaddress
import os
import socket
import sys
import time

import django
from django.core.exceptions import ImproperlyConfigured
from setproctitle import getproctitle

from orchestration import instance
from sasweb import env

from . import folders


def main() -> None:
    """Make what the processes need before they start, then run them."""
    parser = argparse.ArgumentParser(prog="make run", description=__doc__)
    parser.add_argument("--host", default=env.text("HOST", "127.0.0.1"))
    parser.add_argument("--port", type=int, default=env.number("PORT", 8000))
    parser.add_argument("--sandbox-port", type=int, default=env.number("SANDBOX_PORT", 8900))
    parser.add_argument(
        "--demo", action="store_true", help="with orders in every state, if there are none yet"
    )
    given = parser.parse_args()
    getproctitle()  # finds where titles go, which it cannot once the environment has grown
    _require_free(given.host, given.port, "PORT")
    _require_free("127.0.0.1", given.sandbox_port, "SANDBOX_PORT")
    lock = folders.lock(folders.make_data_dir())
    folders.make_socket_dir()
    os.environ.setdefault("SECRET_KEY", "")
    os.environ["SECRET_KEY"] = os.environ["SECRET_KEY"] or folders.secret(
        "secret_key", make_it=True
    )
    os.environ |= {
        "HOST": given.host,
        "PORT": str(given.port),
        "SANDBOX_PORT": str(given.sandbox_port),
        "STARTED": str(time.time() - time.process_time()),
        "PYTHONUNBUFFERED": "1",
    }
    if not _is_local(given.host):  # other machines know this one by names of their own
        os.environ.setdefault("ALLOWED_HOSTS", "*")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sasweb.settings")
    try:
        set_up = _run(given)
    except ImproperlyConfigured as problem:
        raise SystemExit(str(problem)) from None
    finally:
        folders.remove_socket_dir()
        lock.close()
    instance.end(0 if set_up else 1)


def _run(given: argparse.Namespace) -> bool:
    django.setup()
    from django.core.management import call_command

    from orchestration import checks

    from . import manager, processes

    call_command("check", tags=[checks.TAG], stdout=io.StringIO())  # only what is wrong
    options = processes.Options(
        **vars(given), local=_is_local(given.host), shown=sys.stdout.isatty()
    )
    file = folders.data_dir() / "supervisord.conf"
    file.write_text(processes.configuration(processes.programs(options)))
    return manager.run(file)


def _is_local(host: str) -> bool:
    """Return whether only this machine reaches an address to listen on."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _require_free(host: str, port: int, variable: str) -> None:
    """Raise SystemExit unless a port can be listened on."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _name, address in found:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
    except socket.gaierror as error:
        raise SystemExit(
            f"HOST={host} is not an address of this machine ({error.strerror})."
        ) from None
    except OSError as error:
        raise SystemExit(
            f"Port {port} of {host} cannot be used ({error.strerror}). Stop what uses it, or choose "
            f"another: {variable}={port + 1} make run"
        ) from None


if __name__ == "__main__":
    main()
