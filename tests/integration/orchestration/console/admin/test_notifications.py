"""Channels in the admin: set up with secrets that no page shows; and alerts."""

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse

from orchestration.alerting import alerts
from orchestration.models import Alert, Notification, NotificationChannel
from orchestration.models.alert import Severity
from tests.support.operators import browser, person
from tests.support.page import page

pytestmark = pytest.mark.django_db
FIRST, SECOND = "the first secret, long enough", "the second secret, long enough"


def fields(**changed):
    known = {
        "name": "Room", "kind": "webhook", "address": "https://hooks.example.com/x",
        "severity": "warning", "active": "on", "new_secret": FIRST,
    }  # fmt: skip
    return {name: value for name, value in (known | changed).items() if value}


def add(client, **changed):
    return client.post(reverse("admin:orchestration_notificationchannel_add"), fields(**changed))


def change(client, channel, **changed):
    form = reverse("admin:orchestration_notificationchannel_change", args=[channel.id])
    return client.post(form, fields(**changed))


def test_secret_of_a_webhook_is_on_no_page(client):
    assert add(client).status_code == 302
    channel = NotificationChannel.objects.get()
    assert (channel.secret, channel.old_secret) == (FIRST, "")
    for view in ("change", "history"):
        shown = client.get(
            reverse(f"admin:orchestration_notificationchannel_{view}", args=[channel.id])
        )
        assert shown.status_code == 200
        assert FIRST not in shown.text
    channels = client.get(reverse("admin:orchestration_notificationchannel_changelist"))
    assert "one secret" in page(channels).only("#result_list").text
    assert FIRST not in channels.text
    assert not LogEntry.objects.filter(change_message__contains=FIRST).exists()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"address": "http://hooks.example.com/x"}, "https:// addresses only"),
        ({"address": "https://169.254.169.254/"}, "not an address of the public Internet"),
        ({"kind": "email", "address": "no-address"}, "Enter a valid email address"),
        ({"new_secret": ""}, "Enter a secret"),
        ({"new_secret": "short"}, "at least 24 characters"),
    ],
)
def test_invalid_channel_is_refused_with_a_sentence(client, changed, sentence):
    refused = add(client, **changed)
    assert refused.status_code == 200
    assert sentence in " ".join(page(refused).texts(".errorlist"))
    assert not NotificationChannel.objects.exists()


def test_email_channel_requires_no_secret(client):
    assert add(client, kind="email", address="ann@example.com", new_secret="").status_code == 302


def test_secret_is_rotated_in_two_steps(client):
    add(client)
    channel = NotificationChannel.objects.get()
    change(client, channel, new_secret="", severity="critical")
    channel.refresh_from_db()
    assert (channel.secret, channel.old_secret) == (FIRST, "")
    change(client, channel, new_secret=SECOND)
    channel.refresh_from_db()
    assert (channel.secret, channel.old_secret) == (SECOND, FIRST)
    change(client, channel, new_secret="", forget_old_secret="on")
    channel.refresh_from_db()
    assert (channel.secret, channel.old_secret) == (SECOND, "")


def test_notifications_are_read_only(client):
    NotificationChannel.objects.create(name="Ann", kind="email", address="ann@example.com")
    alerts.raise_alert("step/x", severity=Severity.CRITICAL, title="x failed")
    row = Notification.objects.get()
    assert "x failed" in client.get(reverse("admin:orchestration_notification_changelist")).text
    form = reverse("admin:orchestration_notification_change", args=[row.id])
    assert client.get(form).status_code == 200
    assert client.post(form, {"error": "no"}).status_code == 403


class TestAcknowledgement:
    def send(self, client, *rows):
        return client.post(
            reverse("admin:orchestration_alert_changelist"),
            {"action": "acknowledge", "_selected_action": [row.id for row in rows]},
        )

    @pytest.fixture
    def alert(self):
        known = alerts.raise_alert("step/x", severity=Severity.CRITICAL, title="x failed")
        return Alert.objects.get(id=known)

    def test_first_user_is_recorded(self, alert):
        olga = browser(person("olga", "view_alert", "acknowledge", is_staff=True))
        assert self.send(olga, alert).status_code == 302
        alert.refresh_from_db()
        assert (alert.acknowledged_by, alert.closed_at) == ("olga", None)
        alerts_page = page(olga.get(reverse("admin:orchestration_alert_changelist")))
        assert alerts_page.only(".messagelist").numbers() == [1, 1]  # of the selected
        self.send(browser(person("ann", "view_alert", "acknowledge", is_staff=True)), alert)
        alert.refresh_from_db()
        assert alert.acknowledged_by == "olga"

    def test_viewer_cannot_acknowledge(self, alert):
        viewer = browser(person("vic", "view_alert", is_staff=True))
        self.send(viewer, alert)
        alert.refresh_from_db()
        assert alert.acknowledged_by == ""
