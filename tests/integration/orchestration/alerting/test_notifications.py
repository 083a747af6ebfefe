"""The outbox of alerts: one notification a cause and channel, sent until it arrives."""

import base64
import hashlib
import hmac
import json
from datetime import timedelta

import pytest
from django.core import mail
from django.db import connection, connections
from django.db.models import F

from drill.waiting import wait_for
from orchestration import conf
from orchestration.alerting import alerts, notifications
from orchestration.database import leases
from orchestration.messaging import queues
from orchestration.models import Alert, Lease, Notification, NotificationChannel
from orchestration.models.alert import Severity
from orchestration.models.fields import DatabaseNow
from orchestration.models.notification import NOTIFICATIONS
from orchestration.workers.leader_monitor import LeaderMonitor
from tests.support.receiver import receiving

pytestmark = pytest.mark.django_db
SECRET = "a secret that is long enough"


@pytest.fixture
def receiver(settings):
    settings.WEBHOOKS_ALLOW_PRIVATE = True
    with receiving() as server:
        yield server


def by_mail(name="Ann", **fields):
    address = f"{name.lower()}@example.com"
    return NotificationChannel.objects.create(name=name, kind="email", address=address, **fields)


def by_webhook(receiver, **fields):
    known = {"name": "Room", "kind": "webhook", "address": receiver.url, "secret": SECRET}
    return NotificationChannel.objects.create(**known | fields)


def trouble(cause="step/greet/hello/x", severity=Severity.CRITICAL, **fields):
    return alerts.raise_alert(cause, severity=severity, title="greet: hello failed (x)", **fields)


def let_pass(seconds):
    """Let time pass for the outbox."""
    Notification.objects.update(send_after=F("send_after") - timedelta(seconds=seconds))


def test_alert_is_sent_once_however_often_it_is_raised():
    by_mail("Ann")
    by_mail("Bob")
    for _ in range(5):
        trouble(detail="it was x")
    assert Notification.objects.filter(kind="opened").count() == 2
    assert notifications.send_due() == 2
    assert notifications.send_due() == 0
    assert sorted(message.to[0] for message in mail.outbox) == [
        "ann@example.com",
        "bob@example.com",
    ]
    assert mail.outbox[0].subject == "[critical] greet: hello failed (x)"
    assert "it was x" in mail.outbox[0].body
    assert not Notification.objects.filter(sent_at=None).exists()


def test_alert_and_its_notices_are_one_statement(django_assert_num_queries):
    by_mail("Ann")
    by_mail("Bob")
    with django_assert_num_queries(1):
        trouble()


def test_channel_gets_only_its_severities_and_nothing_while_off():
    by_mail("Ann", severity="critical")
    by_mail("Bob")
    by_mail("Cid", active=False)
    trouble("overdue/greet", Severity.WARNING)
    trouble()
    sent_to = Notification.objects.order_by("id").values_list("channel__name", "alert__severity")
    assert sorted(sent_to) == [("Ann", "critical"), ("Bob", "critical"), ("Bob", "warning")]


def test_resolution_goes_to_channels_that_got_the_alert():
    ann = by_mail("Ann")
    trouble()
    notifications.send_due()
    by_mail("Late")
    alerts.close("step/greet/hello/x")
    alerts.close("step/greet/hello/x")
    closed = Notification.objects.get(kind="closed")
    assert closed.channel == ann
    notifications.send_due()
    assert [message.subject[:10] for message in mail.outbox] == ["[critical]", "[closed] g"]


def test_new_outbreak_is_a_new_alert_with_new_notices():
    by_mail()
    for _ in range(2):
        trouble()
        alerts.close("step/greet/hello/x")
    kinds = list(Notification.objects.order_by("id").values_list("kind", flat=True))
    assert kinds == ["opened", "closed"] * 2


@pytest.mark.parametrize(
    "over", [lambda alert: alerts.close_if_unused([alert]), lambda _: alerts.close_overdue()]
)
def test_resolution_is_sent_for_each_way_to_close_an_alert(over):
    by_mail()
    alert = trouble("overdue/greet")
    over(alert)
    assert Alert.objects.get(id=alert).closed_at is not None
    assert Notification.objects.filter(alert=alert, kind="closed").count() == 1


def test_resolution_waits_for_the_alert_to_be_sent(receiver):
    by_webhook(receiver)
    trouble()
    alerts.close("step/greet/hello/x")
    receiver.answers = [500, 204]
    assert notifications.send_due() == 1
    assert notifications.send_due() == 0
    let_pass(20)
    assert notifications.send_due() == 1
    assert notifications.send_due() == 1
    kinds = [json.loads(body)["type"] for _, body in receiver.got]
    assert kinds == ["alert.opened", "alert.opened", "alert.closed"]


def test_failed_notice_is_retried_under_the_same_id(receiver):
    by_webhook(receiver)
    trouble()
    receiver.answers = [500, 503, 204]
    waits = []
    for _ in range(3):
        assert notifications.send_due(chance=lambda: 1.0) == 1
        assert notifications.send_due() == 0
        notification = Notification.objects.get()
        if notification.sent_at is None:
            left = Notification.objects.annotate(left=F("send_after") - DatabaseNow()).get().left
            waits.append(left.total_seconds())
        let_pass(60)
    assert waits == pytest.approx([10, 20], rel=0.4)
    assert (notification.tries, notification.error) == (3, "")
    assert notification.sent_at is not None
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1


def test_failed_notice_is_given_up_after_a_day_with_a_log_line(receiver, caplog):
    by_webhook(receiver)
    trouble()
    receiver.answers = [500]
    notifications.send_due()
    assert Notification.objects.get().given_up_at is None
    Notification.objects.update(
        created_at=DatabaseNow() - timedelta(seconds=conf.NOTIFICATION_MAX_AGE_S),
        send_after=DatabaseNow(),
    )
    notifications.send_due()
    notification = Notification.objects.get()
    assert (notification.tries, notification.error) == (2, "It answered 500.")
    assert notification.given_up_at is not None
    assert "given up after 2 tries: It answered 500." in caplog.text
    let_pass(conf.NOTIFICATION_MAX_AGE_S)
    assert notifications.send_due() == 0
    alerts.close("step/greet/hello/x")  # not notified yet: its end is not notified either
    assert notifications.send_due() == 0


def test_unavailable_mail_server_is_retried(settings):
    by_mail()
    trouble()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", 1, 1
    assert notifications.send_due() == 1
    assert "ConnectionRefusedError" in Notification.objects.get().error
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    let_pass(20)
    assert notifications.send_due() == 1
    (message,) = mail.outbox
    assert (
        leases.message_id(NOTIFICATIONS, Notification.objects.get())
        in message.extra_headers["Message-ID"]
    )


def test_channel_that_was_switched_off_gets_no_late_notice():
    channel = by_mail()
    trouble()
    NotificationChannel.objects.update(active=False)
    notifications.send_due()
    assert Notification.objects.get(channel=channel).given_up_at is not None
    assert mail.outbox == []


def test_both_secrets_sign_during_a_rotation(receiver):
    by_webhook(receiver, old_secret="the former one, long enough")
    trouble()
    notifications.send_due()
    ((headers, body),) = receiver.got
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    for secret in (SECRET, "the former one, long enough"):
        digest = hmac.new(secret.encode(), signed, hashlib.sha256).digest()
        assert f"v1,{base64.b64encode(digest).decode()}" in headers["webhook-signature"].split()


def test_private_address_is_refused_and_nothing_is_sent(receiver, settings):
    settings.WEBHOOKS_ALLOW_PRIVATE = False
    by_webhook(receiver, address=f"https://127.0.0.1:{receiver.port}/")
    trouble()
    notifications.send_due()
    assert "not an address of the public Internet" in Notification.objects.get().error
    assert receiver.got == []


@pytest.mark.django_db(transaction=True)
def test_notice_is_claimed_while_it_is_sent_without_a_transaction(receiver):
    by_webhook(receiver)
    trouble()
    seen = []

    def another_worker():
        seen.append(notifications.send_due())
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND state LIKE 'idle in transaction%'"
            )
            seen.append(cursor.fetchone()[0])
        connections.close_all()

    receiver.meanwhile = another_worker
    assert notifications.send_due() == 1
    assert seen == [0, 0]
    assert len(receiver.got) == 1


def test_notice_of_a_dead_sender_is_sent_again(receiver):
    by_webhook(receiver)
    trouble()

    def die():
        raise KeyboardInterrupt

    receiver.answers = [500, 204]
    with pytest.raises(KeyboardInterrupt):
        notifications.send_due(chance=die)
    assert notifications.send_due() == 0
    assert notifications.due() is False
    let_pass(conf.NOTIFICATION_LEASE_S)
    assert notifications.due() is True
    assert notifications.send_due() == 1
    assert Notification.objects.get().sent_at is not None


def test_doorbell_of_the_alerts_queue_sends_notices():
    assert queues.handler_of(queues.ALERTS) == ("orchestration.workers.jobs.send_notifications", ())


def test_acknowledgement_records_the_first_user():
    alert = trouble()
    assert alerts.acknowledge([alert], by="olga") == 1
    assert alerts.acknowledge([alert], by="ann") == 0
    row = Alert.objects.get(id=alert)
    assert row.acknowledged_by == "olga"
    assert row.acknowledged_at is not None
    alerts.close("step/greet/hello/x")
    again = trouble()
    assert Alert.objects.get(id=again).acknowledged_by == ""


@pytest.mark.django_db(transaction=True)
def test_lookout_sends_that_no_process_leads_without_a_doorbell(monkeypatch):
    monkeypatch.setattr(conf, "LEADER_CHECK_INTERVAL_S", 0.02)
    monkeypatch.setattr(conf, "LEASE_S", 0.1)
    Lease.objects.update(expires_at=DatabaseNow())
    by_mail()
    trouble()
    with LeaderMonitor():
        wait_for(lambda: len(mail.outbox) == 3, "all alerts are sent")
    subjects = {message.subject for message in mail.outbox}
    assert subjects == {
        "[critical] greet: hello failed (x)",
        "[critical] No supervisor leads",
        "[critical] No housekeeper leads",
    }
