"""Channels are set up in the admin; their secrets go in and never come out."""

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse

from orchestration import alerts
from orchestration.models import Alert, Notice, NoticeChannel
from orchestration.models.alert import Severity
from tests.operators import browser, person

pytestmark = pytest.mark.django_db
FIRST, SECOND = "the first secret, long enough", "the second secret, long enough"


@pytest.fixture
def client():
    return browser(person("ada", is_staff=True, is_superuser=True))


def fields(**changed):
    known = {
        "name": "Room", "kind": "webhook", "address": "https://hooks.example.com/x",
        "severity": "warning", "active": "on", "new_secret": FIRST,
    }  # fmt: skip
    return {name: value for name, value in (known | changed).items() if value}


def add(client, **changed):
    return client.post(reverse("admin:orchestration_noticechannel_add"), fields(**changed))


def change(client, channel, **changed):
    page = reverse("admin:orchestration_noticechannel_change", args=[channel.id])
    return client.post(page, fields(**changed))


def test_a_webhook_is_set_up_with_a_secret_that_no_page_shows(client):
    assert add(client).status_code == 302
    channel = NoticeChannel.objects.get()
    assert (channel.secret, channel.old_secret) == (FIRST, "")
    for page in ("change", "history"):
        shown = client.get(reverse(f"admin:orchestration_noticechannel_{page}", args=[channel.id]))
        assert shown.status_code == 200
        assert FIRST not in shown.text
    assert "one secret" in client.get(reverse("admin:orchestration_noticechannel_changelist")).text
    assert not LogEntry.objects.filter(change_message__contains=FIRST).exists()


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"address": "http://hooks.example.com/x"}, "https:// addresses only"),
        ({"address": "https://169.254.169.254/"}, "not an address of the public Internet"),
        ({"kind": "email", "address": "nobody"}, "Enter a valid email address"),
        ({"new_secret": ""}, "A webhook needs a secret"),
        ({"new_secret": "short"}, "at least 24 characters"),
    ],
)
def test_what_could_not_work_is_refused_with_a_sentence(client, changed, complaint):
    page = add(client, **changed)
    assert page.status_code == 200
    assert complaint in page.text
    assert not NoticeChannel.objects.exists()


def test_an_address_of_e_mail_needs_no_secret(client):
    assert add(client, kind="email", address="ann@example.com", new_secret="").status_code == 302


def test_a_secret_is_changed_in_two_steps(client):
    add(client)
    channel = NoticeChannel.objects.get()
    change(client, channel, new_secret="", severity="critical")
    channel.refresh_from_db()
    assert (channel.secret, channel.old_secret) == (FIRST, "")
    change(client, channel, new_secret=SECOND)
    channel.refresh_from_db()
    assert (channel.secret, channel.old_secret) == (SECOND, FIRST)
    change(client, channel, new_secret="", forget_old_secret="on")
    channel.refresh_from_db()
    assert (channel.secret, channel.old_secret) == (SECOND, "")


def test_notices_are_to_look_at(client):
    NoticeChannel.objects.create(name="Ann", kind="email", address="ann@example.com")
    alerts.raise_alert("step/x", severity=Severity.CRITICAL, title="x failed")
    row = Notice.objects.get()
    assert "x failed" in client.get(reverse("admin:orchestration_notice_changelist")).text
    page = reverse("admin:orchestration_notice_change", args=[row.id])
    assert client.get(page).status_code == 200
    assert client.post(page, {"error": "no"}).status_code == 403


class TestAcknowledging:
    def send(self, client, *rows):
        return client.post(
            reverse("admin:orchestration_alert_changelist"),
            {"action": "acknowledge", "_selected_action": [row.id for row in rows]},
        )

    @pytest.fixture
    def alert(self):
        known = alerts.raise_alert("step/x", severity=Severity.CRITICAL, title="x failed")
        return Alert.objects.get(id=known)

    def test_it_records_who(self, alert):
        olga = browser(person("olga", "view_alert", "acknowledge", is_staff=True))
        assert self.send(olga, alert).status_code == 302
        alert.refresh_from_db()
        assert (alert.acknowledged_by, alert.closed_at) == ("olga", None)
        assert (
            "Acknowledged: 1 of 1."
            in olga.get(reverse("admin:orchestration_alert_changelist")).text
        )
        self.send(browser(person("ann", "view_alert", "acknowledge", is_staff=True)), alert)
        alert.refresh_from_db()
        assert alert.acknowledged_by == "olga"

    def test_who_may_only_look_cannot(self, alert):
        viewer = browser(person("vic", "view_alert", is_staff=True))
        self.send(viewer, alert)
        alert.refresh_from_db()
        assert alert.acknowledged_by == ""
