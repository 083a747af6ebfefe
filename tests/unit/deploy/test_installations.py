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
    served = {queue for one in started for queue in one.queues(QUEUES)}
    assert (
        sorted(QUEUES - served) == []
    )  # a new agent's, perhaps: name it in the installation's files
    assert sorted(served - QUEUES) == []


def test_all_kinds_of_processes_are_started(started):
    commands = [one.command for one in started]
    assert any(command[:2] == WEB for command in commands)
    for kind in ("supervisor", "housekeeper", "migrate"):
        assert ["python", "manage.py", kind] in commands


def test_processes_may_end_what_they_have_begun(started):
    for one in started:
        if one.for_people:
            continue
        assert one.grace >= max(map(patience, one.queues(QUEUES)), default=USUAL), one


def test_commands_exist(started):
    for one in started:
        program, target, *rest = one.command
        if one.for_people:
            continue
        if target == "manage.py":
            assert (PROJECT / target).exists()
            assert rest[0] in get_commands(), one
        else:
            assert [program, target] in (WEB, ["python", "-m"]), one
            assert target != "-m" or (PROJECT / rest[0] / "__main__.py").exists()


@pytest.mark.parametrize("name", ["compose", "kubernetes, large"])
def test_only_what_has_to_reaches_other_networks(name):
    reach = {"inventory", "payment", "shipping", "notification", "audit", "alerts", "push"}
    for one in INSTALLATIONS[name]():
        queues = set(one.queues(QUEUES))
        if one.for_people:  # `reconcile` reads the partners' ledgers
            continue
        assert queues <= reach if one.outside else not queues & reach, one
        assert queues or not one.outside, one


def test_a_worker_is_known_by_its_command():
    def queues(*command):
        one = Started(name="x", command=list(command), grace=10.0, outside=False)
        return one.queues(["a", "b", "c"])

    assert queues("python", "manage.py", "work", "a", "b") == ["a", "b"]
    assert queues("python", "manage.py", "work", "--all") == ["a", "b", "c"]
    assert queues("python", "manage.py", "work", "--all", "--but", "a", "c") == ["b"]
    assert queues("python", "manage.py", "supervisor") == []
    assert queues("gunicorn", "sasweb.wsgi") == []


@pytest.mark.parametrize("folder", ["base", "overlays/small", "overlays/large", "archive"])
def test_manifests_are_ones_of_a_current_kubernetes(folder):
    found = list(manifests(KUBERNETES / folder))
    assert found
    for one in found:
        kubernetes_validate.validate(one, check.CURRENT, strict=True)


def test_a_misspelt_field_is_refused():
    one, *_ = manifests(KUBERNETES / "base")
    one["spec"]["replica"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(one, check.CURRENT, strict=True)


def test_autoscaled_deployments_exist():
    names = {one.name for one in by_kubernetes("large")}
    for scaled in manifests(KUBERNETES / "keda"):
        assert scaled["spec"]["scaleTargetRef"]["name"] in names
