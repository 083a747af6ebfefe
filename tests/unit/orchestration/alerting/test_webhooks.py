"""Where webhooks may go, how they are signed, and what a notification says: no database."""

import asyncio
import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime

import pytest

from orchestration import conf
from orchestration.alerting import notifications, webhooks
from orchestration.decisions.backoff import backoff
from orchestration.models import Alert, Notification, NotificationChannel
from orchestration.models.inbox import PUSHES
from tests.support.receiver import receiving

NEW, OLD = "the new secret, long enough", "the former secret, long enough"


@pytest.fixture
def _development(settings):
    settings.WEBHOOKS_ALLOW_PRIVATE = True


@pytest.fixture
def receiver():
    with receiving() as server:
        yield server


def hook(url, **fields):
    return webhooks.Webhook(
        **{"id": "notification-1-2", "url": url, "secrets": [NEW], "body": b"{}"} | fields
    )


def post(*hooks):
    return asyncio.run(webhooks.post(hooks, 1_700_000_000))


def expected(secret, signed):
    return base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.com/a",
        "ftp://hooks.example.com/a",
        "hooks.example.com/a",
        "https://",
        "https://user@hooks.example.com/",
        "https://:secret@hooks.example.com/",
        "https://hooks.example.com:0/",
        "https://hooks.example.com:99999/",
        "https://127.0.0.1/",
        "https://127.255.0.9/",
        "https://0.0.0.0/",
        "https://10.1.2.3/",
        "https://172.16.0.1/",
        "https://192.168.1.1/",
        "https://100.64.0.1/",
        "https://192.0.0.192/latest/meta-data",
        "https://192.88.99.1/",
        "https://[3fff::1]/",
        "https://169.254.169.254/latest/meta-data",
        "https://224.0.0.1/",
        "https://255.255.255.255/",
        "https://[::1]/",
        "https://[::]/",
        "https://[fe80::1]/",
        "https://[fd00::1]/",
        "https://[ff02::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:169.254.169.254]/",
        "https://[2002:7f00:1::]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[::127.0.0.1]/",
        "https://\uff11\uff12\uff17.\uff10.\uff10.\uff11/",
        "https://127\u30020\u30020\u30021/",
        "https://\u246027.0.0.1/",
    ],
)
def test_private_and_plain_http_addresses_are_refused(url):
    with pytest.raises(webhooks.ForbiddenAddress):
        webhooks.parse_address(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.com/services/T0/B0/x?a=1",
        "https://1.1.1.1/",
        "https://[2606:4700::1]/",
    ],
)
def test_public_address_is_accepted(url):
    assert webhooks.parse_address(url).scheme == "https"


def test_hosts_may_be_listed(settings):
    settings.WEBHOOK_HOSTS = ["Hooks.example.com"]
    assert webhooks.parse_address("https://HOOKS.example.com./a")
    with pytest.raises(webhooks.ForbiddenAddress, match="WEBHOOK_HOSTS"):
        webhooks.parse_address("https://hooks.example.com.evil.example/a")


@pytest.mark.parametrize("host", ["localhost", "127.1", "2130706433", "0x7f.1"])
def test_name_that_resolves_to_a_private_address_is_refused_on_use(receiver, host):
    (problem,) = post(hook(f"https://{host}:{receiver.port}/hook"))
    assert problem
    assert receiver.got == []


def test_error_names_the_private_address_of_a_name(receiver):
    (problem,) = post(hook(f"https://localhost:{receiver.port}/hook"))
    assert "is not an address of the public Internet" in problem


def test_private_address_is_refused_however_the_url_is_parsed(receiver, monkeypatch):
    monkeypatch.setattr(webhooks, "parse_address", lambda _url: None)
    (problem,) = post(hook(f"https://127\u30020\u30020\u30021:{receiver.port}/hook"))
    assert "is not an address of the public Internet" in problem
    assert receiver.got == []


@pytest.mark.usefixtures("_development")
class TestPost:
    def test_delivery_is_signed(self, receiver):
        assert post(hook(receiver.url, body=b'{"text":"hello"}')) == [""]
        ((headers, body),) = receiver.got
        assert body == b'{"text":"hello"}'
        assert headers["content-type"] == "application/json"
        assert (headers["webhook-id"], headers["webhook-timestamp"]) == (
            "notification-1-2",
            "1700000000",
        )
        signed = b'notification-1-2.1700000000.{"text":"hello"}'
        assert headers["webhook-signature"] == f"v1,{expected(NEW.encode(), signed)}"

    def test_either_secret_verifies_during_a_rotation(self, receiver):
        post(hook(receiver.url, secrets=[NEW, OLD]))
        ((headers, body),) = receiver.got
        signed = b"notification-1-2.1700000000." + body
        assert headers["webhook-signature"].split() == [
            f"v1,{expected(secret.encode(), signed)}" for secret in (NEW, OLD)
        ]

    def test_secret_of_the_specification_is_decoded(self, receiver):
        key = bytes(range(24))
        post(hook(receiver.url, secrets=["whsec_" + base64.b64encode(key).decode()]))
        ((headers, body),) = receiver.got
        signed = b"notification-1-2.1700000000." + body
        assert headers["webhook-signature"] == f"v1,{expected(key, signed)}"

    @pytest.mark.parametrize("status", [301, 307, 400, 404, 429, 500])
    def test_delivery_fails_unless_2xx_and_follows_no_redirect(self, receiver, status):
        receiver.answers = [status]
        assert post(hook(receiver.url)) == [f"It answered {status}."]
        assert len(receiver.got) == 1

    def test_delivery_to_a_closed_port_fails(self, receiver):
        (problem,) = post(hook("http://127.0.0.1:1/"))
        assert "ClientConnectorError" in problem

    def test_delivery_to_a_silent_receiver_times_out(self, receiver, monkeypatch):
        from threading import Event

        answered = Event()
        receiver.meanwhile = lambda: answered.wait(20)
        monkeypatch.setattr(webhooks, "TIMEOUT", 0.2)
        assert post(hook(receiver.url)) == ["No answer within 0.2 s."]
        answered.set()

    def test_failed_delivery_does_not_delay_the_others(self, receiver):
        problems = post(
            hook("http://127.0.0.1:1/"), hook(receiver.url), hook(receiver.url, secrets=[])
        )
        assert [bool(problem) for problem in problems] == [True, False, True]
        assert len(receiver.got) == 1


def test_backoff_doubles_up_to_an_hour():
    first, cap = PUSHES.wait_s, PUSHES.wait_cap_s
    assert [backoff(first, cap, tries, 1.0) for tries in (1, 2, 3)] == [10, 20, 40]
    assert backoff(first, cap, 1, 0.0) == 5
    assert backoff(first, cap, 60, 1.0) == conf.NOTIFICATION_WAIT_CAP_S


class TestWords:
    def notification(self, kind="opened", **fields):
        at = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
        known = {
            "id": 7, "fingerprint": "step/greet/hello/x", "severity": "critical",
            "title": "greet: hello failed (x)", "detail": "it was x", "count": 3, "first_seen": at,
        }  # fmt: skip
        return Notification(
            id=9,
            kind=kind,
            created_at=at,
            channel=NotificationChannel(),
            alert=Alert(**known | fields),
        )

    def test_slack_gets_text_and_others_get_data(self):
        message = json.loads(notifications.body(self.notification()))
        assert message["text"] == (
            "[critical] greet: hello failed (x)\nit was x\n"
            "First seen 2030-01-02 03:04:05 UTC, 3 times so far.\n"
            f"What to do: {message['alert']['runbook']}"
        )
        assert message["alert"]["runbook"].endswith("#step-failed")
        assert (message["id"], message["type"]) == (
            "notification-9-1893553445000000",
            "alert.opened",
        )
        assert message["alert"]["cause"] == "step/greet/hello/x"
        assert message["alert"]["closed_at"] is None

    def test_resolved_message_says_that_the_cause_is_gone(self):
        closed = datetime(2030, 1, 2, 4, 0, tzinfo=UTC)
        message = json.loads(notifications.body(self.notification("closed", closed_at=closed)))
        assert message["text"].startswith("[closed] greet: hello failed (x)\n")
        assert message["text"].endswith("Closed 2030-01-02 04:00:00 UTC: the cause is gone.")

    def test_message_contains_no_markup_and_no_mention(self):
        notification = self.notification(
            title="<!channel> & <https://evil.example|click>", detail="a\x00b\x1b[0m"
        )
        message = json.loads(notifications.body(notification))
        assert message["text"].startswith(
            "[critical] &lt;!channel&gt; &amp; &lt;https://evil.example|click&gt;\na b [0m\n"
        )
        assert message["mrkdwn"] is False

    def test_mail_subject_is_one_line_and_its_body_is_small(self):
        notification = self.notification(title="one\r\nBcc: all@example.com", detail="x" * 100_000)
        assert notifications.headline(notification) == "[critical] one Bcc: all@example.com"
        assert len(notifications.body(notification)) < 4 * conf.NOTIFICATION_DETAIL_CHARS
