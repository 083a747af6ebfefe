"""`python -m sasweb.stack`: the whole system on this machine, until Ctrl-C. `make run` calls it."""

import argparse
import errno
import io
import ipaddress
import os
import socket
import sys
import time

import django
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from setproctitle import getproctitle

from sasweb import env

from . import folders


def main() -> None:
    """Make what the processes need before they start, then run them."""
    os.umask(0o077)
    _open_standard_files()
    try:
        from orchestration.cluster import instance  # which reads the environment

        arguments = _parse()
        set_up = _start(arguments)
    except (CommandError, ImproperlyConfigured) as problem:
        raise SystemExit(str(problem)) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    instance.end(0 if set_up else 1)


def _open_standard_files() -> None:
    """Open those of the standard files that are closed: the next file would take the number of one."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make run", description=__doc__)
    parser.add_argument("--host", default=env.text("HOST", "127.0.0.1"))
    parser.add_argument("--port", type=int, default=env.number("PORT", 8000))
    parser.add_argument("--sandbox-port", type=int, default=env.number("SANDBOX_PORT", 8900))
    parser.add_argument(
        "--demo", action="store_true", help="with orders in every state, if there are none yet"
    )
    arguments = parser.parse_args()
    arguments.host = {"localhost": "127.0.0.1"}.get(arguments.host, arguments.host)
    return arguments


def _start(arguments: argparse.Namespace) -> bool:
    """Run a stack until it is stopped; return whether its setup succeeded."""
    getproctitle()  # finds where titles go, which it cannot once the environment has grown
    if arguments.port == arguments.sandbox_port:
        raise SystemExit(
            f"PORT and SANDBOX_PORT are both {arguments.port}; each needs one of its own."
        )
    _require_free(arguments.host, arguments.port, "PORT")
    _require_free("127.0.0.1", arguments.sandbox_port, "SANDBOX_PORT")
    data = folders.make_data_dir()
    for path in (folders.PROJECT, data):
        if forbidden := set(str(path)) & set(";#\n"):
            raise SystemExit(
                f"{path} cannot be used: supervisord does not take {forbidden.pop()!r} in it."
            )
    with folders.lock(data):
        folders.make_socket_dir()
        given_by_value = {
            "SECRET_KEY": env.text("SECRET_KEY") or folders.secret("secret_key", make_it=True),
            "MESSAGE_KEY": env.text("MESSAGE_KEY") or folders.secret("message_key", make_it=True),
            "HOST": arguments.host,
            "PORT": str(arguments.port),
            "SANDBOX_PORT": str(arguments.sandbox_port),
            "STARTED": str(time.time() - time.process_time()),
            "PYTHONUNBUFFERED": "1",
            "PROCESS": "stack",
        }
        if not _is_local(arguments.host) and not env.text("ALLOWED_HOSTS"):
            given_by_value["ALLOWED_HOSTS"] = "*"  # other machines know this one by their own names
        for name in given_by_value:
            os.environ.pop(f"{name}_FILE", None)  # it was read
        os.environ |= given_by_value
        os.environ.setdefault("LOG_FORMAT", "text")  # one log of all processes, for people
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sasweb.settings")
        try:
            return _run(arguments)
        finally:
            folders.remove_socket_dir()


def _run(arguments: argparse.Namespace) -> bool:
    django.setup()
    from orchestration import checks

    from . import manager, processes

    call_command("check", tags=[checks.TAG], stdout=io.StringIO())  # only what is wrong
    shown = sys.stdout.isatty()
    options = processes.Options(**vars(arguments), local=_is_local(arguments.host), shown=shown)
    file = folders.data_dir() / "supervisord.conf"
    file.write_text(processes.configuration(processes.programs(options)))
    with folders.lock_copies():
        return manager.run(file)


def _is_local(host: str) -> bool:
    """Return whether only this machine reaches an address to listen on."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return False


def _require_free(host: str, port: int, variable: str) -> None:
    """Raise SystemExit unless a port can be listened on."""
    if not 0 < port < 65_536:
        raise SystemExit(f"{variable}={port} is not a port: they go from 1 to 65535.")
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _name, address in addresses:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        if isinstance(error, UnicodeError | socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            raise SystemExit(f"HOST={host} is not an address of this machine ({why}).") from None
        raise SystemExit(
            f"Port {port} of {host} cannot be used ({why}). Stop what uses it, or choose another: "
            f"{variable}={port + 1} make run"
        ) from None


if __name__ == "__main__":
    main()
