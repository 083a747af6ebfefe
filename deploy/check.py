"""`python -m deploy.check`: have each tool say whether it takes our files. Nothing is started or installed.

kubectl renders the overlays, and each object has to be one of a current Kubernetes; systemd-analyze verifies
the units; nginx tests its configuration, with each way to be reached and to log. No process has a
secret that the table in `needs` does not give it.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import yaml

from deploy import needs, pods, proxy
from deploy.installations import HERE, INSTALLATIONS
from deploy.pods import KUBERNETES
from deploy.units import SYSTEMD

CURRENT = "1.37"
OTHERS = {"keda.sh/v1alpha1"}  # kinds that Kubernetes itself does not have
PROGRAMS = ("opt/sas/.venv/bin/python", "opt/sas/.venv/bin/gunicorn", "usr/sbin/nginx", "bin/kill")
CLOSED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
OPTIONS = ("keda", "direct", "archive")  # components that an overlay may add
WITH_ALL = """
resources: [{base}]
components: [{components}]
"""


def main() -> int:
    """Run all checks; return 1 if one fails."""
    if missing := [name for name in ("kubectl", "systemd-analyze") if not shutil.which(name)]:
        raise SystemExit(f"{', '.join(missing)} is needed for this check.")
    with tempfile.TemporaryDirectory(dir=HERE) as folder:
        problems = [
            *secrets(),
            *kubernetes(Path(folder)),
            *systemd(Path(folder)),
            *nginx(Path(folder)),
        ]
    for problem in problems:
        print(f"BAD: {problem}")
    return 1 if problems else 0


def secrets() -> Iterator[str]:
    """Yield each secret that a process has though it does not need it, or lacks."""
    for name, started in INSTALLATIONS.items():
        processes = list(started())
        yield from (f"{name}: {problem}" for problem in needs.problems(processes))
        print(f"secrets, {name}: {len(processes)} processes")


def kubernetes(folder: Path) -> Iterator[str]:
    """Yield problems of the overlays, and of the large overlay with all components."""
    overlays = sorted(path for path in (KUBERNETES / "overlays").iterdir() if path.is_dir())
    full = folder / "large-with-all"
    full.mkdir()
    base, *components = (
        f"../../{_below(KUBERNETES / name)}" for name in ("overlays/large", *OPTIONS)
    )
    text = WITH_ALL.format(base=base, components=", ".join(components))
    (full / "kustomization.yaml").write_text(text)
    for overlay in (*overlays, full):
        done = _run("kubectl", "kustomize", str(overlay))
        if done.returncode:
            yield f"{overlay.name}: {done.stderr}"
            continue
        objects = list(yaml.safe_load_all(done.stdout))
        for problem in (*_scaled_twice(objects), *_lost(objects), *_secrets(objects)):
            yield f"{overlay.name}: {problem}"
        for resource in objects:
            name = f"{overlay.name}: {resource['kind']} {resource['metadata']['name']}"
            yield from (f"{name}: {problem}" for problem in (*_invalid(resource), *_open(resource)))
        print(f"kubernetes {CURRENT}, {overlay.name}: {len(objects)} objects")


def _secrets(objects: list[dict[str, Any]]) -> Iterator[str]:
    """Yield what is wrong with the secrets of processes as kubectl renders them, patches included."""
    [shared] = [
        manifest["data"]
        for manifest in objects
        if manifest["kind"] == "ConfigMap"
        and manifest["metadata"]["name"].startswith("sas-environment")
    ]
    yield from needs.problems(pods.processes(objects, shared))


def _invalid(resource: dict[str, Any]) -> Iterator[str]:
    if resource["apiVersion"] in OTHERS:
        return
    try:
        kubernetes_validate.validate(resource, CURRENT, strict=True)
    except kubernetes_validate.ValidationError as error:
        yield error.message


def _open(resource: dict[str, Any]) -> Iterator[str]:
    """Yield unnecessary privileges of a pod's containers."""
    if resource["kind"] not in {"Deployment", "Job", "CronJob"}:
        return
    job = resource["spec"]["jobTemplate"] if resource["kind"] == "CronJob" else resource
    pod = job["spec"]["template"]["spec"]
    if not pod["securityContext"]["runAsNonRoot"]:
        yield "its processes may be root"
    for container in (*pod.get("initContainers", []), *pod["containers"]):
        context = container.get("securityContext", {})
        if context | CLOSED != context:
            yield f"{container['name']}: its security context lacks some of {CLOSED}"


def _lost(objects: list[dict[str, Any]]) -> Iterator[str]:
    """Yield each ConfigMap that is referenced but not defined."""
    there = {
        resource["metadata"]["name"] for resource in objects if resource["kind"] == "ConfigMap"
    }
    for resource in objects:
        for name in set(re.findall(r"'configMapRef': {'name': '([^']+)'}", str(resource))) - there:
            yield f"{resource['kind']} {resource['metadata']['name']}: there is no ConfigMap {name}"


def _scaled_twice(objects: list[dict[str, Any]]) -> Iterator[str]:
    """Yield each Deployment whose `replicas` an apply would set though an autoscaler does."""
    scaled = {
        resource["spec"]["scaleTargetRef"]["name"]
        for resource in objects
        if "scaleTargetRef" in resource.get("spec", {})
    }
    for resource in objects:
        if resource["kind"] == "Deployment":
            name = resource["metadata"]["name"]
            if ("replicas" in resource["spec"]) == (name in scaled):
                yield f"{name}: its number of replicas is set by two, or by none"


def systemd(folder: Path) -> Iterator[str]:
    """Yield what is wrong with the units, in a file system that has the programs which they name."""
    units = sorted(file.name for file in SYSTEMD.iterdir() if file.is_file())
    names = [name.replace("@.", "@1.") for name in units]
    shutil.copytree(SYSTEMD, folder / "etc/systemd/system")
    shutil.copytree("/usr/lib/systemd/system", folder / "usr/lib/systemd/system", symlinks=True)
    for program in PROGRAMS:
        (folder / program).parent.mkdir(parents=True, exist_ok=True)
        (folder / program).touch(0o755)
    done = _run("systemd-analyze", "verify", f"--root={folder}", *names)
    if done.returncode or done.stderr:
        yield done.stderr
    print(f"systemd: {len(names)} units")


def nginx(folder: Path) -> Iterator[str]:
    """Yield what is wrong with the proxy's configuration."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    _run(
        *("openssl", "req", "-x509", "-nodes", "-newkey", "rsa:2048", "-subj", "/CN=shop.example"),
        *("-keyout", str(key), "-out", str(certificate)),
    )
    ways = sorted(proxy.CONFIGURATION.glob("l*.conf"))  # listen*, log*
    for way in ways:
        tested = folder / way.stem
        tested.mkdir()
        shutil.copytree(proxy.CONFIGURATION, tested / "conf")
        text = way.read_text().replace("/run/secrets/", f"{folder}/")
        (tested / "conf" / f"{way.stem.partition('-')[0]}.conf").write_text(text)
        (tested / "conf" / "upstream.conf").write_text(proxy.upstreams(8000, 8001))
        done = _run(*proxy.command(tested, "-t", "-q"))
        if done.returncode or done.stderr:
            yield f"{way.name}: {done.stderr}"
    print(f"nginx: {', '.join(way.name for way in ways)}")


def _below(path: Path) -> Path:
    return path.relative_to(HERE)


def _run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
