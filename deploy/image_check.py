"""`python -m deploy.image_check`: build the image, and run every service of `compose.yaml` from it.

In an empty folder: the last commit's files, secrets as `make_secrets.py` makes them, the image. Then, in a
network of its own where the services' names lead to this machine, a real Postgres and Redis, and the
processes of the image as compose would start them: its commands, environment and secrets, its user. An order
placed through the proxy has to complete, each process to end in time, and no file to be theirs but in /tmp.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import redis

from deploy import compose, image
from deploy.compose import Service
from deploy.proxy import proxy
from drill.process import Process, end_all
from drill.servers import Servers
from drill.shopper import Shopper
from drill.waiting import wait_for
from sasweb.stack import embedded, folders

ORDERS = 3
NAMES = ("postgres", "redis", "web", "shop", "sandbox")  # of services, as others know them
STATE = "SELECT count(*) FROM orchestration_task WHERE reference = %s AND state = 'processed'"


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def main() -> int:
    """Build, then go on in a network of its own; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m deploy.image_check", description=__doc__)
    parser.add_argument("--container", help="the container to start processes in: only by itself")
    options = parser.parse_args()
    folder = folders.data_dir()
    if options.container:
        return check(folder, options.container)
    image.require_tools("buildah", "debootstrap", "unshare", "ip")
    work = folders.make_data_dir() / "image-check"
    shutil.rmtree(work, ignore_errors=True)
    folders.make(work, folders.PASSABLE)
    began = time.monotonic()
    image.make_base(work / "base")
    say(f"base: {image.size(image.BASE):.0f} MB, {time.monotonic() - began:.0f} s")
    image.extract(work / "project")
    subprocess.run([sys.executable, "project/deploy/make_secrets.py"], cwd=work, check=True)
    began = time.monotonic()
    image.build(work / "project", work / "build.log")
    added = image.size(image.IMAGE) - image.size(image.BASE)
    say(f"image: {added:.0f} MB on its base, {time.monotonic() - began:.0f} s")
    with image.container(image.IMAGE) as name:
        apart = ["unshare", "--net", "--mount", sys.executable, "-m", "deploy.image_check"]
        done = subprocess.run(
            [*apart, "--container", name], env={**os.environ, "DATA_DIR": str(work)}, check=False
        )
    image.remove()
    return done.returncode


class Project:
    """The services of an extracted project, as processes in a container."""

    def __init__(self, folder: Path, container: str, servers: Servers) -> None:
        self.container, self.servers = container, servers
        self.secrets = folder / "project" / "deploy" / "secrets"
        self.services = compose.services(folder / "project" / "deploy" / "compose.yaml")
        self.hosts = folder / "hosts"
        self.hosts.write_text(f"127.0.0.1 localhost {' '.join(NAMES)}\n")
        self.running: dict[str, tuple[Service, Process]] = {}

    def command(self, service: Service, command: list[str]) -> list[str]:
        """Return the command line that runs a command as a service would."""
        secrets = {self.secrets / name: f"/run/secrets/{name}" for name in service.secrets}
        volumes = {self.hosts: "/etc/hosts", **secrets}
        return image.run(self.container, command, variables=service.environment, volumes=volumes)

    def start(self, name: str) -> None:
        """Start all processes of a service."""
        service = self.services[name]
        command = self.command(service, service.command or image.configured("Cmd"))
        for number in range(1, service.scale + 1):
            process = f"{name}-{number}"
            self.running[process] = (service, self.servers.process(process, command))

    def completes(self, order: str) -> None:
        """Wait until an order is completed."""
        wait_for(lambda: self.servers.count(STATE, order), f"the order {order} completes")

    def once(self, name: str, *command: str) -> str:
        """Run a command in a service's place to its end; return what it prints."""
        service = self.services[name]
        chosen = list(command) or service.command or []
        done = subprocess.run(
            self.command(service, chosen), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{chosen}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def inside(self, name: str) -> int:
        """Return the id of a process in the container: the first Python of the image's user."""
        user = int(image.configured("User")[0].partition(":")[0])
        front = [self.running[name][1].pid]
        while front:
            pid = front.pop(0)
            program = Path(f"/proc/{pid}/exe").readlink().name
            if Path(f"/proc/{pid}").stat().st_uid == user and program.startswith("python"):
                return pid
            for thread in Path(f"/proc/{pid}/task").iterdir():
                front += map(int, (thread / "children").read_text().split())
        raise AssertionError(f"{name} has no process of the user {user}; see {self.servers.logs}")

    def end(self) -> list[str]:
        """Send SIGTERM to each process; return those that do not end well within their grace."""
        bad = []
        began = time.monotonic()
        for name in self.running:
            os.kill(self.inside(name), signal.SIGTERM)
        for name, (service, process) in self.running.items():
            try:
                code = process.wait(max(0.0, began + service.grace - time.monotonic()))
            except subprocess.TimeoutExpired:
                bad.append(f"{name} has not ended within {service.grace:g} s")
            else:
                bad += [f"{name} ended with {code}"] if code else []
        return bad


def check(folder: Path, container: str) -> int:
    """Run everything in this namespace; print what is seen, and return 1 if something is bad."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    servers = Servers(folder / "logs")
    project = Project(folder, container, servers)
    try:
        start_servers(project)
        say(f"migrate: {len(project.once('migrate').splitlines())} lines")
        say(f"grant: {len(project.once('grant').splitlines())} lines")
        project.start("sandbox")
        project.once("manage", "python", "manage.py", "seed")
        for name, service in project.services.items():
            if not service.once and name != "sandbox":
                project.start(name)
        bad = observe(project, folder)
    finally:
        end_all(process for _, process in project.running.values())
        servers.stop()
    for sentence in bad:
        say(f"BAD: {sentence}")
    return 1 if bad else 0


def start_servers(project: Project) -> None:
    """Start Postgres and Redis as the services' addresses name them."""
    servers = project.servers
    servers.start_postgres("listen_addresses=127.0.0.1")
    servers.execute("CREATE ROLE sas LOGIN")
    servers.execute("CREATE ROLE shop_web LOGIN")
    servers.execute("CREATE DATABASE sas OWNER sas")
    users = folders.make(servers.logs.parent / "redis", servers=True) / "users.acl"
    users.write_text((project.secrets / "redis_users.acl").read_text())
    users.chmod(0o644)
    network = ["--bind", "127.0.0.1", "--port", "6379", "--aclfile", str(users)]
    command = [*embedded.prepare_redis(), *network]
    servers.running["redis"] = servers.process("redis", command, **folders.server_identity())

    address = (project.secrets / "redis_url_admin").read_text().replace("@redis:", "@127.0.0.1:")

    def answers() -> bool:
        try:
            return bool(redis.Redis.from_url(address).ping())
        except redis.RedisError:
            return False

    wait_for(answers, "Redis answers")


def observe(project: Project, folder: Path) -> list[str]:
    """Place orders through the proxy, look at processes and files, end all; return what is bad."""
    for name in ("web", "shop"):
        wait_for(partial(_healthy, project, name), f"the health check of {name} succeeds", 60)
    say(f"canary: {wait_for(lambda: _canary(project), 'a task goes through all parts', 60)}")
    with proxy(folder / "proxy", 8000, shop_port=8001) as port:
        for _ in range(ORDERS):
            began = time.monotonic()
            order = Shopper(port).buy()
            project.completes(order)
            say(
                f"order {order}: completed {time.monotonic() - began:.1f} s after the shop was opened"
            )
    for name in project.running:
        status = Path(f"/proc/{project.inside(name)}/status").read_text()
        facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        memory = int(facts["VmRSS"].split()[0]) // 1024
        say(f"{name:<14} user {facts['Uid'].split()[0]}, {memory} MB")
    bad = project.end()
    user = image.configured("User")[0].partition(":")[0]
    with image.mounted(project.container) as root:
        paths = subprocess.run(
            ["find", str(root), "-xdev", "-uid", user], capture_output=True, text=True, check=True
        ).stdout.split()
    say(f"files written outside of /tmp: {len(paths)}")
    return bad + [f"{path} was written" for path in paths]


def _healthy(project: Project, name: str) -> bool:
    service = project.services[name]
    command = project.command(service, service.health or [])
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _canary(project: Project) -> str:
    try:
        return project.once("manage", "python", "manage.py", "canary").splitlines()[-1]
    except AssertionError:
        return ""  # a part is not up yet


if __name__ == "__main__":
    sys.exit(main())
