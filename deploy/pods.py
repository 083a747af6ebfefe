"""The processes in Kubernetes objects, as files or `kubectl kustomize` have them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from deploy.needs import needed
from deploy.started import Started, paired

KUBERNETES = Path(__file__).with_name("kubernetes")
USUAL_GRACE = 30.0  # seconds, where a pod does not say
MOUNTED = "/run/secrets/sas/"
PREFIX = "sas-"  # the Secret sas-NAME has what the process NAME needs, each by its variable
KINDS = {"Deployment", "Job", "CronJob"}


def manifests(*folders: Path) -> Iterator[dict[str, Any]]:
    """Return the Kubernetes objects in folders, kustomize's own left out."""
    for folder in folders:
        for file in sorted(folder.glob("*.yaml")):
            if file.name != "kustomization.yaml":
                yield from yaml.safe_load_all(file.read_text())


def by_kubernetes(overlay: str) -> list[Started]:
    """Return the processes of an overlay and its base, with the variables that all of them have."""
    generated = yaml.safe_load((KUBERNETES / "base" / "kustomization.yaml").read_text())
    shared = dict(line.split("=", 1) for line in generated["configMapGenerator"][0]["literals"])
    folders = (KUBERNETES / "base", KUBERNETES / "overlays" / overlay)
    return processes(list(manifests(*folders)), shared)


def processes(objects: Sequence[Mapping[str, Any]], shared: Mapping[str, str]) -> list[Started]:
    """Return the processes of objects, whose containers have `shared` variables beside their own."""
    running = [manifest for manifest in objects if manifest["kind"] in KINDS]
    contents = {
        f"{PREFIX}{process.name}": dict(needed(process))
        for process in (_process(manifest, shared, {}) for manifest in running)
    }
    return [_process(manifest, shared, contents) for manifest in running]


def _process(
    manifest: Mapping[str, Any],
    shared: Mapping[str, str],
    contents: Mapping[str, Mapping[str, str]],
) -> Started:
    """Return the process of an object; `contents` are those of Secrets, by variable."""
    template = (manifest["spec"]["jobTemplate"] if manifest["kind"] == "CronJob" else manifest)[
        "spec"
    ]["template"]
    pod = template["spec"]
    [container] = [each for each in pod["containers"] if each["name"] == "sas"]
    variables = {
        **shared,
        **{each["name"]: each.get("value", "") for each in container.get("env", [])},
    }
    sources = {
        f"{MOUNTED}{variable}": source
        for secret in _secrets(pod)
        for variable, source in contents.get(secret, {secret: secret}).items()
    }
    return Started(
        name=manifest["metadata"]["name"],
        command=container["args"],
        grace=float(pod.get("terminationGracePeriodSeconds", USUAL_GRACE)),
        outside=template["metadata"]["labels"].get("reaches") == "outside",
        secrets=paired(variables, sources),
        serves_shop=variables.get("SERVES") == "shop",
        signs=variables.get("SIGNS") != "0",
        for_people=container["args"][0] == "sleep",
    )


def _secrets(pod: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the Secrets that a pod has, in whichever way."""
    for volume in pod.get("volumes", []):
        if "secret" in volume:
            yield volume["secret"]["secretName"]
        for source in volume.get("projected", {}).get("sources", []):
            if "secret" in source:
                yield source["secret"]["name"]
    for container in (*pod.get("initContainers", []), *pod["containers"]):
        yield from (
            each["secretRef"]["name"]
            for each in container.get("envFrom", [])
            if "secretRef" in each
        )
        for each in container.get("env", []):
            if key := each.get("valueFrom", {}).get("secretKeyRef"):
                yield key["name"]
