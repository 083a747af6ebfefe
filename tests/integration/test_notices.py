"""The outbox of alerts: one notice a cause and channel, sent until it arrives."""

import base64
import hashlib
import hmac
import json
from datetime import timedelta

import pytest
from django.core import mail
from django.db import connection, connections
from django.db.models import F

from orchestration import alerts, conf, notices, queues
from orchestration.lookout import Lookout
from orchestration.models import Alert, Lease, Notice, NoticeChannel
from orchestration.models.alert import Severity
from orchestration.models.fields import DatabaseNow
from tests.receiver import receiving
from tests.servers import wait_for

pytestmark = pytest.mark.django_db
SECRET = "a secret that is long enough"


@pytest.fixture
def receiver(settings):
    settings.WEBHOOKS_ALLOW_PRIVATE = True
    with receiving() as one:
        yield one


def by_mail(name="Ann", **fields):
    address = f"{name.lower()}@example.com"
    return NoticeChannel.objects.create(name=name, kind="email", address=address, **fields)


def by_webhook(receiver, **fields):
    known = {"name": "Room", "kind": "webhook", "address": receiver.url, "secret": SECRET}
    return NoticeChannel.objects.create(**known | fields)


def trouble(cause="step/greet/hello/x", severity=Severity.CRITICAL, **fields):
    return alerts.raise_alert(cause, severity=severity, title="greet: hello failed (x)", **fields)


def let_pass(seconds):
    """Let time pass for the outbox."""
    Notice.objects.update(send_after=F("send_after") - timedelta(seconds=seconds))


def test_an_alert_is_told_once_however_often_it_is_seen():
    by_mail("Ann")
    by_mail("Bob")
    for _ in range(5):
        trouble(detail="it was x")
    assert Notice.objects.filter(kind="opened").count() == 2
    assert notices.send_due() == 2
    assert notices.send_due() == 0
    assert sorted(message.to[0] for message in mail.outbox) == [
        "ann@example.com",
        "bob@example.com",
    ]
    assert mail.outbox[0].subject == "[critical] greet: hello failed (x)"
    assert "it was x" in mail.outbox[0].body
    assert not Notice.objects.filter(sent_at=None).exists()


def test_an_alert_costs_one_statement_with_its_notices(django_assert_num_queries):
    by_mail("Ann")
    by_mail("Bob")
    with django_assert_num_queries(1):
        trouble()


def test_who_wants_only_the_worst_is_told_only_of_that_and_who_is_off_of_nothing():
    by_mail("Ann", severity="critical")
    by_mail("Bob")
    by_mail("Cid", active=False)
    trouble("overdue/greet", Severity.WARNING)
    trouble()
    told = Notice.objects.order_by("id").values_list("channel__name", "alert__severity")
    assert sorted(told) == [("Ann", "critical"), ("Bob", "critical"), ("Bob", "warning")]


def test_the_end_is_told_to_those_who_were_told_of_the_beginning():
    ann = by_mail("Ann")
    trouble()
    notices.send_due()
    by_mail("Late")
    alerts.close("step/greet/hello/x")
    alerts.close("step/greet/hello/x")
    closed = Notice.objects.get(kind="closed")
    assert closed.channel == ann
    notices.send_due()
    assert [message.subject[:10] for message in mail.outbox] == ["[critical]", "[closed] g"]


def test_a_new_outbreak_is_a_new_alert_and_told_anew():
    by_mail()
    for _ in range(2):
        trouble()
        alerts.close("step/greet/hello/x")
    kinds = list(Notice.objects.order_by("id").values_list("kind", flat=True))
    assert kinds == ["opened", "closed"] * 2


@pytest.mark.parametrize(
    "over", [lambda alert: alerts.close_if_healed([alert]), lambda _: alerts.close_overdue()]
)
def test_each_way_to_close_an_alert_is_told(over):
    by_mail()
    alert = trouble("overdue/greet")
    over(alert)
    assert Alert.objects.get(id=alert).closed_at is not None
    assert Notice.objects.filter(alert=alert, kind="closed").count() == 1


def test_an_end_waits_for_its_beginning(receiver):
    by_webhook(receiver)
    trouble()
    alerts.close("step/greet/hello/x")
    receiver.answers = [500, 204]
    assert notices.send_due() == 1
    assert notices.send_due() == 0
    let_pass(20)
    assert notices.send_due() == 1
    assert notices.send_due() == 1
    kinds = [json.loads(body)["type"] for _, body in receiver.got]
    assert kinds == ["alert.opened", "alert.opened", "alert.closed"]


def test_what_fails_is_sent_again_later_under_the_same_id(receiver):
    by_webhook(receiver)
    trouble()
    receiver.answers = [500, 503, 204]
    waits = []
    for _ in range(3):
        assert notices.send_due(chance=lambda: 1.0) == 1
        assert notices.send_due() == 0
        notice = Notice.objects.get()
        if notice.sent_at is None:
            left = Notice.objects.annotate(left=F("send_after") - DatabaseNow()).get().left
            waits.append(left.total_seconds())
        let_pass(60)
    assert waits == pytest.approx([10, 20], abs=1)
    assert (notice.tries, notice.error) == (3, "")
    assert notice.sent_at is not None
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1


def test_after_a_day_it_is_given_up_with_a_line_in_the_log(receiver, caplog):
    by_webhook(receiver)
    trouble()
    receiver.answers = [500]
    notices.send_due()
    assert Notice.objects.get().given_up_at is None
    Notice.objects.update(
        created_at=DatabaseNow() - timedelta(seconds=conf.NOTICE_PATIENCE), send_after=DatabaseNow()
    )
    notices.send_due()
    notice = Notice.objects.get()
    assert (notice.tries, notice.error) == (2, "It answered 500.")
    assert notice.given_up_at is not None
    assert "given up after 2 tries: It answered 500." in caplog.text
    let_pass(conf.NOTICE_PATIENCE)
    assert notices.send_due() == 0
    alerts.close("step/greet/hello/x")  # nobody knows of it: nobody is told of its end
    assert notices.send_due() == 0


def test_a_mail_server_that_is_away_is_waited_for(settings):
    by_mail()
    trouble()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", 1, 1
    assert notices.send_due() == 1
    assert "ConnectionRefusedError" in Notice.objects.get().error
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    let_pass(20)
    assert notices.send_due() == 1
    (message,) = mail.outbox
    assert notices.message_id(Notice.objects.get()) in message.extra_headers["Message-ID"]


def test_a_channel_that_was_switched_off_is_not_told_later():
    channel = by_mail()
    trouble()
    NoticeChannel.objects.update(active=False)
    notices.send_due()
    assert Notice.objects.get(channel=channel).given_up_at is not None
    assert mail.outbox == []


def test_both_secrets_sign_while_they_change_over(receiver):
    by_webhook(receiver, old_secret="the former one, long enough")
    trouble()
    notices.send_due()
    ((headers, body),) = receiver.got
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    for secret in (SECRET, "the former one, long enough"):
        digest = hmac.new(secret.encode(), signed, hashlib.sha256).digest()
        assert f"v1,{base64.b64encode(digest).decode()}" in headers["webhook-signature"].split()


def test_a_private_address_is_refused_and_nothing_is_sent(receiver, settings):
    settings.WEBHOOKS_ALLOW_PRIVATE = False
    by_webhook(receiver, address=f"https://127.0.0.1:{receiver.port}/")
    trouble()
    notices.send_due()
    assert "not an address of the public Internet" in Notice.objects.get().error
    assert receiver.got == []


@pytest.mark.django_db(transaction=True)
def test_while_a_notice_is_sent_nobody_else_sends_it_and_no_transaction_is_open(receiver):
    by_webhook(receiver)
    trouble()
    seen = []

    def another_worker():
        seen.append(notices.send_due())
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND state LIKE 'idle in transaction%'"
            )
            seen.append(cursor.fetchone()[0])
        connections.close_all()

    receiver.meanwhile = another_worker
    assert notices.send_due() == 1
    assert seen == [0, 0]
    assert len(receiver.got) == 1


def test_a_sender_that_died_leaves_a_notice_that_is_sent_again(receiver):
    by_webhook(receiver)
    trouble()

    def die():
        raise KeyboardInterrupt

    receiver.answers = [500, 204]
    with pytest.raises(KeyboardInterrupt):
        notices.send_due(chance=die)
    assert notices.send_due() == 0
    assert notices.due() is False
    let_pass(conf.NOTICE_LEASE)
    assert notices.due() is True
    assert notices.send_due() == 1
    assert Notice.objects.get().sent_at is not None


def test_the_doorbell_of_the_alerts_queue_sends():
    assert queues.answer_to(queues.ALERTS) == ("orchestration.jobs.send_notices", ())


def test_acknowledging_records_who_was_first():
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
def test_without_any_doorbell_the_lookout_sends_and_says_that_nobody_leads(monkeypatch):
    monkeypatch.setattr(conf, "LOOKOUT", 0.02)
    monkeypatch.setattr(conf, "LEASE", 0.1)
    Lease.objects.update(expires_at=DatabaseNow())
    by_mail()
    trouble()
    with Lookout():
        wait_for(lambda: len(mail.outbox) == 3, "all alerts are told")
    subjects = {message.subject for message in mail.outbox}
    assert subjects == {
        "[critical] greet: hello failed (x)",
        "[critical] No supervisor leads",
        "[critical] No housekeeper leads",
    }
