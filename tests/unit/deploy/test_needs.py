"""No process has a secret that it does not need, in any installation."""

import re
import shutil
from dataclasses import replace

import pytest
import yaml

from deploy import compose, needs
from deploy.installations import INSTALLATIONS, by_compose
from deploy.pods import KUBERNETES, manifests, processes
from deploy.started import Started
from deploy.units import SYSTEMD, by_systemd
from orchestration import supervisor
from orchestration.housekeeping import housekeeper
from orchestration.messaging import queue_names

SECRETS = {
    *("SECRET_KEY", "MESSAGE_KEY", "PAYMENT_SECRET_KEY", "PAYMENT_WEBHOOK_SECRET", "EMAIL_URL")
}


@pytest.fixture(params=INSTALLATIONS)
def started(request):
    return list(INSTALLATIONS[request.param]())


def test_each_process_has_the_secrets_that_it_needs_and_no_other(started):
    assert list(needs.problems(started)) == []


@pytest.mark.parametrize(
    ("command", "duties"),
    [("supervisor", supervisor.DUTIES), ("housekeeper", housekeeper.DUTIES)],
)
def test_leader_that_returns_messages_can_sign_them_and_no_other(command, duties):
    returns = housekeeper.RETURN_DEAD_LETTERS in duties
    assert ("MESSAGE_KEY" in needs.OF_COMMAND[command]) == returns


def test_table_names_every_queue():
    assert set(needs.OF_QUEUE) == {name for name in queue_names.declared() if name != "greeter"}


def who_has(started, variable):
    """Return the queues, commands and web servers that have a secret."""
    return {
        name
        for process in started
        if not process.for_people and variable in dict(process.secrets)
        for name in process.queues(list(needs.OF_QUEUE))
        or [process.command[0] if process.command[0] == "gunicorn" else process.command[2]]
    }


@pytest.mark.parametrize(
    ("variable", "processes"),
    [
        ("PAYMENT_SECRET_KEY", {"payment"}),
        ("PAYMENT_WEBHOOK_SECRET", {"gunicorn"}),
        ("EMAIL_URL", {"gunicorn", "alerts", "push"}),
        ("SECRET_KEY", {"gunicorn", "status.shop"}),
        (
            "MESSAGE_KEY",
            {
                "scheduler",
                "housekeeper",
                "inventory",
                "payment",
                "shipping",
                "courier",
                "notification",
            },
        ),
    ],
)
def test_secret_is_where_it_is_needed_alone(variable, processes):
    """The table itself, by the installation that has a process for each queue."""
    assert who_has(INSTALLATIONS["kubernetes, large"](), variable) == processes


def test_shop_has_a_role_of_its_own_and_is_beside_the_web_server_for_staff(started):
    web = [process for process in started if process.command[0] == "gunicorn"]
    roles = {process.serves_shop: dict(process.secrets)["DATABASE_URL"] for process in web}
    assert roles == {True: "shop_database_url", False: "database_url"}


PLANTED = [
    ("housekeeper", ("PAYMENT_SECRET_KEY", "payment_secret_key")),
    ("shop", ("DATABASE_URL", "database_url")),
    ("scheduler", ("SECRET_KEY", "secret_key")),
    ("supervisor", ("", "email_url")),
    ("web", ("MESSAGE_KEY", "message_key")),
    ("shop", ("PAYMENT_WEBHOOK_SECRET", "payment_webhook_secret")),
]


@pytest.mark.parametrize(("name", "secret"), PLANTED)
def test_planted_secret_is_found(name, secret):
    [process] = [candidate for candidate in by_compose() if candidate.name == name]
    planted = replace(process, secrets=process.secrets | {secret})
    [problem] = needs.problems([planted])
    assert name in problem
    assert secret[1] in problem


def test_secret_planted_in_compose_is_found(tmp_path):
    text = compose.FILE.read_text()
    planted = re.sub(
        r"(  housekeeper:.*\n(?:    .*\n)*?    secrets: \[)", r"\1payment_secret_key, ", text
    )
    assert planted != text
    (tmp_path / "compose.yaml").write_text(planted)
    [problem] = needs.problems(list(by_compose(tmp_path / "compose.yaml")))
    assert problem.startswith("housekeeper has payment_secret_key")


def test_secret_planted_in_a_unit_is_found(tmp_path):
    shutil.copytree(SYSTEMD, tmp_path, dirs_exist_ok=True)
    with (tmp_path / "sas-.service.d" / "common.conf").open("a") as file:
        file.write("LoadCredential=payment_secret_key:/etc/sas/secrets/payment_secret_key\n")
    problems = list(needs.problems(list(by_systemd(tmp_path))))
    assert [line for line in problems if line.startswith("sas-web.service has payment_secret_key")]


VOLUME = {"name": "more", "secret": {"secretName": "sas-manage"}}
BY_VARIABLE = {"name": "X", "valueFrom": {"secretKeyRef": {"name": "sas-payment", "key": "X"}}}


@pytest.mark.parametrize("planted", [VOLUME, BY_VARIABLE])
def test_secret_planted_in_a_pod_is_found(planted):
    objects = list(manifests(KUBERNETES / "base", KUBERNETES / "overlays" / "large"))
    generated = yaml.safe_load((KUBERNETES / "base" / "kustomization.yaml").read_text())
    shared = dict(line.split("=", 1) for line in generated["configMapGenerator"][0]["literals"])
    assert list(needs.problems(processes(objects, shared))) == []
    [pod] = [
        manifest["spec"]["template"]["spec"]
        for manifest in objects
        if manifest["kind"] == "Deployment" and manifest["metadata"]["name"] == "housekeeper"
    ]
    if "secret" in planted:
        pod["volumes"].append(planted)
    else:
        pod["containers"][0]["env"].append(planted)
    problems = list(needs.problems(processes(objects, shared)))
    assert [line for line in problems if line.startswith("housekeeper has")]


def test_user_on_redis_is_that_of_the_queues():
    def user(*queues):
        return needs.redis_user(queues)

    assert user("submission", "status.shop", "push") == "engine"
    assert user("scheduler") == "scheduler"
    assert user("payment") == "agent-payment"
    assert user("inventory", "shipping") == "agents"
    assert user("scheduler", "payment") == "worker"


def test_worker_of_an_unknown_queue_is_in_no_table():
    process = Started(
        name="x", command=["python", "manage.py", "work", "y"], grace=1.0, outside=False
    )
    with pytest.raises(KeyError):
        needs.needed(process)
