"""Each installation's files start what the engine needs, and let it end its work."""

import kubernetes_validate
import pytest
from django.core.management import get_commands

from deploy import check
from deploy.installations import INSTALLATIONS
from deploy.pods import KUBERNETES, by_kubernetes, manifests
from deploy.started import WEB, Started
from orchestration.messaging import queue_names
from sasweb.stack.folders import PROJECT
from sasweb.stack.processes import USUAL, patience

QUEUES = {name for name in queue_names.declared() if name != "greeter"}  # the tests' own agent


@pytest.fixture(params=INSTALLATIONS)
def started(request):
    return list(INSTALLATIONS[request.param]())


def test_every_queue_is_served(started):
    served = {queue for process in started for queue in process.queues(QUEUES)}
    assert (
        sorted(QUEUES - served) == []
    )  # a new agent's, perhaps: name it in the installation's files
    assert sorted(served - QUEUES) == []


def test_all_kinds_of_processes_are_started(started):
    commands = [process.command for process in started]
    assert any(command[:2] == WEB for command in commands)
    for kind in ("supervisor", "housekeeper", "migrate"):
        assert ["python", "manage.py", kind] in commands


def test_processes_may_end_what_they_have_begun(started):
    for process in started:
        if process.for_people:
            continue
        assert process.grace >= max(map(patience, process.queues(QUEUES)), default=USUAL), process


def test_commands_exist(started):
    for process in started:
        program, target, *rest = process.command
        if process.for_people:
            continue
        if target == "manage.py":
            assert (PROJECT / target).exists()
            assert rest[0] in get_commands(), process
        else:
            assert [program, target] in (WEB, ["python", "-m"]), process
            assert target != "-m" or (PROJECT / rest[0] / "__main__.py").exists()


@pytest.mark.parametrize("name", ["compose", "kubernetes, large"])
def test_only_what_has_to_reaches_other_networks(name):
    reach = {
        "inventory",
        "payment",
        "shipping",
        "courier",
        "notification",
        "audit",
        "alerts",
        "push",
    }
    for process in INSTALLATIONS[name]():
        queues = set(process.queues(QUEUES))
        if process.for_people:  # `reconcile` reads the partners' ledgers
            continue
        assert queues <= reach if process.outside else not queues & reach, process
        assert queues or not process.outside, process


def test_a_worker_is_known_by_its_command():
    def queues(*command):
        process = Started(name="x", command=list(command), grace=10.0, outside=False)
        return process.queues(["a", "b", "c"])

    assert queues("python", "manage.py", "work", "a", "b") == ["a", "b"]
    assert queues("python", "manage.py", "work", "--all") == ["a", "b", "c"]
    assert queues("python", "manage.py", "work", "--all", "--but", "a", "c") == ["b"]
    assert queues("python", "manage.py", "supervisor") == []
    assert queues("gunicorn", "sasweb.wsgi") == []


@pytest.mark.parametrize("folder", ["base", "overlays/small", "overlays/large", "archive"])
def test_manifests_are_ones_of_a_current_kubernetes(folder):
    objects = list(manifests(KUBERNETES / folder))
    assert objects
    for manifest in objects:
        kubernetes_validate.validate(manifest, check.CURRENT, strict=True)


def test_a_misspelt_field_is_refused():
    manifest, *_ = manifests(KUBERNETES / "base")
    manifest["spec"]["replica"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, check.CURRENT, strict=True)


def test_autoscaled_deployments_exist():
    names = {process.name for process in by_kubernetes("large")}
    for scaled in manifests(KUBERNETES / "keda"):
        assert scaled["spec"]["scaleTargetRef"]["name"] in names
