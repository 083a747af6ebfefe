"""Applications and their tokens: made, shown once, good for what they name, revoked."""

import json
import re
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import timezone

from orchestration import api
from orchestration.applications import tokens
from orchestration.models import Application, ApplicationToken, StatusMessage
from orchestration.models.fields import DatabaseNow
from tests.support.engine import in_error, new_task, run_to_end
from tests.support.operators import browser, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def till():
    return Application.objects.create(name="till")


@pytest.fixture
def admin():
    return browser(person("ada", is_staff=True, is_superuser=True))


def token_of(application, *scopes, **options):
    return tokens.issue(
        application, label="a job", scopes=scopes or ["status:read"], by="ada", **options
    )


def command(*words):
    out = StringIO()
    call_command("applications", *words, stdout=out)
    return json.loads(out.getvalue())


def test_token_identifies_its_application_and_only_its_hash_is_kept(till):
    row, token = token_of(till)
    caller = tokens.authenticate(token)
    assert (caller.name, caller.scopes) == ("till", {"status:read"})
    assert token not in str(ApplicationToken.objects.values().get(id=row.id))
    assert token.startswith(row.start)
    assert ApplicationToken.objects.get(id=row.id).used_at is not None


@pytest.mark.parametrize("wrong", ["", "sas_", "sas_x", "é", "sas_\0", "x" * 1000])
def test_invalid_token_identifies_no_application(till, wrong):
    token_of(till)
    assert tokens.authenticate(wrong) is None


@pytest.mark.django_db(transaction=True)
def test_token_is_invalid_when_revoked_expired_or_switched_off(till):
    revoked, first = token_of(till)
    _, second = token_of(till)
    _, past = token_of(till, expires_at=revoked.created_at - timedelta(days=1))
    assert tokens.revoke([revoked.id], by="ada") == 1
    assert tokens.revoke([revoked.id], by="bob") == 0
    assert ApplicationToken.objects.get(id=revoked.id).revoked_by == "ada"
    assert tokens.authenticate(first) is None
    assert tokens.authenticate(past) is None
    assert tokens.authenticate(second) is not None
    Application.objects.update(active=False)
    assert tokens.authenticate(second) is None


def test_undeclared_scope_is_refused(till):
    with pytest.raises(tokens.UnknownScope, match="did you mean 'status:read'"):
        token_of(till, "status:reed")


def test_token_use_is_written_once_a_minute(till, django_assert_num_queries):
    _, token = token_of(till)
    tokens.authenticate(token)
    with django_assert_num_queries(1):
        tokens.authenticate(token)
    ApplicationToken.objects.update(used_at=DatabaseNow() - timedelta(minutes=2))
    with django_assert_num_queries(2):
        tokens.authenticate(token)


def test_known_application_can_be_notified(till):
    api.submit("greet", reference="1", data={"name": "Ada"}, reply_to="till")
    with pytest.raises(LookupError):
        api.submit("greet", reference="2", data={"name": "Ada"}, reply_to="tills")


def messages_to(name="till"):
    rows = StatusMessage.objects.filter(reply_to=name).order_by("id")
    return [(row.number, row.kind, row.detail.get("step", "")) for row in rows]


def test_subscriber_of_steps_gets_each_step_before_the_end(till):
    quiet = new_task(reply_to="till")
    Application.objects.update(notify_steps=True)
    loud = new_task(reply_to="till")
    for task in (quiet, loud):
        run_to_end(task)
    assert sorted(message for message in messages_to() if message[1] != "step") == [
        (1, "received", ""),
        (1, "received", ""),
        (2, "completed", ""),
        (loud.steps.count() + 2, "completed", ""),
    ]
    steps = [message for message in messages_to() if message[1] == "step"]
    assert [number for number, *_ in steps] == list(range(2, loud.steps.count() + 2))
    assert {name for *_, name in steps} == set(loud.steps.values_list("name", flat=True))


def test_failure_message_names_the_step_and_whether_input_may_change(till):
    in_error(new_task(reply_to="till"), "rejected")
    message = StatusMessage.objects.get(number=2)
    assert message.kind == "action_needed"
    assert message.detail == {
        "steps": [{"step": "hello", "direction": "do", "code": "rejected_code"}]
    }


def test_keeper_of_a_workflow_has_gapless_sequence_numbers(till, monkeypatch):
    from dataclasses import replace

    from orchestration import registry

    greet = registry.workflows["greet"]
    monkeypatch.setitem(registry.workflows, "greet", replace(greet, owner_application="shop"))
    Application.objects.filter(name="till").update(notify_steps=True)
    run_to_end(new_task(reply_to="till"))
    for name in ("shop", "till"):
        assert [number for number, *_ in messages_to(name)] == list(
            range(1, len(messages_to(name)) + 1)
        )
    assert [kind for _, kind, _ in messages_to("till")] == ["received", "step", "step", "completed"]
    assert [kind for _, kind, _ in messages_to("shop")] == ["received", "step", "completed"]
    for own in ("", "shop"):
        StatusMessage.objects.all().delete()
        run_to_end(new_task(reply_to=own))
        assert [kind for _, kind, _ in messages_to("shop")] == ["received", "step", "completed"]
        assert StatusMessage.objects.count() == 3


def test_admin_shows_a_token_once(admin, till):
    address = reverse("admin:orchestration_applicationtoken_add")
    data = {"application": till.id, "label": "nightly", "scopes": ["status:read"]}
    data["last_day"] = "2999-12-31"
    made = admin.post(address, data)
    (token,) = re.findall(r"sas_[\w-]{43}", made.text)
    assert "no-store" in made["Cache-Control"]
    assert tokens.authenticate(token).name == "till"
    listed = admin.get(reverse("admin:orchestration_applicationtoken_changelist"))
    assert token not in listed.text
    assert ApplicationToken.objects.get().expires_at.year == 3000
    assert token[:10] in listed.text


def test_admin_refuses_a_token_whose_last_day_is_over(admin, till):
    address = reverse("admin:orchestration_applicationtoken_add")
    data = {"application": till.id, "label": "nightly", "scopes": ["status:read"]}
    refused = admin.post(address, {**data, "last_day": "2020-01-01"})
    assert refused.context["adminform"].form.errors.as_data()["last_day"][0].code == "past"
    assert not ApplicationToken.objects.exists()
    today = admin.post(address, {**data, "last_day": f"{timezone.localdate():%Y-%m-%d}"})
    assert tokens.authenticate(re.findall(r"sas_[\w-]{43}", today.text)[0]).name == "till"


def test_admin_revokes_a_token(admin, till):
    row, token = token_of(till)
    admin.post(
        reverse("admin:orchestration_applicationtoken_changelist"),
        {"action": "revoke", "_selected_action": [row.id]},
    )
    assert tokens.authenticate(token) is None
    assert ApplicationToken.objects.get(id=row.id).revoked_by == "ada"


def test_admin_refuses_a_receiver_without_secret_or_good_address(admin):
    address = reverse("admin:orchestration_application_add")
    data = {
        "name": "till",
        "delivery": "push",
        "rate": 60,
        "max_priority": 0,
        "active": "on",
        "url": "http://10.0.0.1/",
    }
    refused = admin.post(address, data)
    assert refused.status_code == 200
    assert {"url", "new_secret"} <= refused.context["adminform"].form.errors.keys()
    data |= {"url": "https://till.example/hook", "new_secret": "a secret that is long enough"}
    assert admin.post(address, data).status_code == 302
    made = Application.objects.get(name="till")
    assert (made.url, made.secret) == ("https://till.example/hook", "a secret that is long enough")
    change = reverse("admin:orchestration_application_change", args=[made.id])
    assert "long enough" not in admin.get(change).text
    admin.post(change, data | {"new_secret": "another one that is long enough"})
    made.refresh_from_db()
    assert made.old_secret == "a secret that is long enough"


def test_admin_refuses_polling_where_a_consumer_is_set(admin):
    shop = Application.objects.get(name="shop")
    assert shop.delivery == "consumer"
    data = {"delivery": "pull", "rate": 60}
    page = admin.post(reverse("admin:orchestration_application_change", args=[shop.id]), data)
    assert "delivery" in page.context["adminform"].form.errors


def test_command_manages_tokens():
    assert command("add", "till", "--steps") == {"name": "till", "delivery": "pull"}
    pushed = command("add", "store", "--push", "https://store.example/hook")
    assert Application.objects.get(name="store").secret == pushed["secret"]
    made = command("token", "till", "--label", "x", "--scope", "status:read", "--days", "3")
    assert tokens.authenticate(made["token"]).name == "till"
    assert [token["label"] for token in command("tokens", "till")] == ["x"]
    assert [application["name"] for application in command("list")] == ["shop", "store", "till"]
    command("off", "till")
    assert tokens.authenticate(made["token"]) is None
    command("on", "till")
    command("revoke", str(made["id"]))
    assert tokens.authenticate(made["token"]) is None


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["add", "Till"], "Small letters"),
        (["add", "till", "--push", "http://till.example/"], "https:// addresses only"),
        (["token", "tills", "--label", "x", "--scope", "status:read"], "did you mean 'till'"),
        (["token", "till", "--label", "x", "--scope", "read"], "there is no scope"),
        (["revoke", "99"], "does not exist"),
    ],
)
def test_command_reports_errors(till, words, why):
    with pytest.raises(CommandError, match=why):
        command(*words)
