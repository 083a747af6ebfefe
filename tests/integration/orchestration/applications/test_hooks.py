"""Webhooks of services: verified, kept once, and applied whenever they come."""

import json
import logging
import time
from collections import Counter
from datetime import timedelta
from io import BytesIO
from uuid import uuid4

import pytest
from django.db import connection

from orchestration import api, registry, task_requests
from orchestration.agents.webhook import InvalidWebhook, Reported, UnverifiedWebhook
from orchestration.alerting import alerts
from orchestration.applications import hooks
from orchestration.cluster.debounce import Pauses
from orchestration.database import clock
from orchestration.messaging.messages import Accepted
from orchestration.models import Alert, Event, ExternalId, TaskRequest
from orchestration.payloads import signatures
from orchestration.payloads.placeholders import key
from orchestration.testing import outcomes
from orchestration.transitions import replies
from orchestration.workflows.step import Step as Declared
from orchestration.workflows.workflow import Workflow
from tests.support.engine import claimed, new_task, reply_to, request_undo, step_of

pytestmark = pytest.mark.django_db
SECRET = "whsec_c2VjcmV0"


class Bank(api.HttpAgent):
    name = "bank"
    base_url = "http://127.0.0.1:9"

    @api.action
    async def charge(self, call):
        """Charge a card."""
        return await self.post(call, "/charges", body=call.payload, expect={"id": str})

    @api.action
    async def refund(self, call):
        """Return it."""
        return await self.post(call, "/refunds", body=call.payload)

    @classmethod
    def receive(cls, webhook):
        webhook.verify_stripe(SECRET)
        event = webhook.json()
        if event["type"] == "other":
            return
        about = event.get("about")
        if event["type"] == "paid":
            yield Reported(id=event["id"], of=about, result={"id": event.get("charge", "ch_1")})
        elif event["type"] == "broken":
            yield event
        elif event["type"] == "fault":
            raise KeyError("amount")
        else:
            yield Reported(id=event["id"], of=about, refused=event["type"], message="no funds")


class Quiet(Bank):
    name = "quiet"
    receive = api.Agent.receive


@pytest.fixture(autouse=True)
def nothing_alerted(monkeypatch):
    """No alert is raised yet, and none is to be counted."""
    monkeypatch.setattr(hooks, "_uncounted", Counter())
    Pauses.end_all()
    yield
    Pauses.end_all()


@pytest.fixture
def declare(monkeypatch):
    monkeypatch.setitem(registry.agents, "bank", Bank)
    monkeypatch.setitem(registry.agents, "quiet", Quiet)

    def add(**fields):
        step = Declared(
            name="pay", agent="bank", action="charge", undo="refund",
            undo_request={"key": key("pay")}, **fields,
        )  # fmt: skip
        monkeypatch.setitem(registry.workflows, "w", Workflow(name="w", steps=[step]))

    add()
    return add


@pytest.fixture
def run(declare, run):
    """A run that knows the bank."""
    run.script("bank.charge", outcomes.later({"url": "https://bank/3ds"}, id="pi_1"))
    return run


def event(kind="paid", *, about="pi_1", event_id="evt_1", **more):
    return json.dumps({"id": event_id, "type": kind, "about": about, **more}).encode()


def headers(body, *, secret=SECRET, age=0.0, now=None):
    stamp = str(int((time.time() if now is None else now) - age))
    signature = signatures.stripe(secret, stamp, body)
    return {"Stripe-Signature": f"t={stamp},v1={signature},v0=6ffb"}


@pytest.fixture
def post(client):
    def send(body, agent="bank", signed=None, **extra):
        signed = headers(body) if signed is None else signed
        return client.post(
            f"/hooks/{agent}/", body, content_type="application/json", headers=signed, **extra
        )

    return send


def requests():
    return list(TaskRequest.objects.order_by("id").values_list("refusal", flat=True))


class TestDoor:
    @pytest.fixture(autouse=True)
    def declared(self, declare):
        """The bank is declared."""

    def test_verified_webhook_costs_one_insert(self, post, django_assert_num_queries):
        with django_assert_num_queries(1):
            answer = post(event())
        assert (answer.status_code, answer.content) == (202, b"Accepted\n")
        request = TaskRequest.objects.get()
        assert (request.agent, request.external_id, request.workflow) == ("bank", "pi_1", "")
        assert request.actor == "bank"

    def test_event_that_reports_nothing_costs_no_query(self, post, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert post(event("other")).status_code == 202

    def test_event_counts_once(self, post):
        assert [post(event()).status_code for _ in range(3)] == [202, 202, 202]
        assert TaskRequest.objects.count() == 1

    @pytest.mark.parametrize(
        "signed",
        [
            {},
            {"Stripe-Signature": ""},
            {"Stripe-Signature": "t=1,v1="},
            {"Stripe-Signature": "v1=abc"},
            {"Stripe-Signature": "t=soon,v1=abc"},
            {"Stripe-Signature": "t=\xe9,v1=\xe9"},
            headers(event(), secret="whsec_b3RoZXI="),
            headers(event(about="pi_2")),
            headers(event(), age=3000),
            headers(event(), age=-3000),
        ],
    )
    def test_webhook_that_is_not_verified_is_refused_and_kept_nowhere(self, post, signed):
        answer = post(event(), signed=signed)
        assert (answer.status_code, answer.content) == (401, b"Unauthorized\n")
        assert not TaskRequest.objects.exists()
        assert Alert.objects.get().fingerprint == "webhook/bank/refused"

    def test_refusals_open_one_alert_and_cost_no_query_beside(
        self, post, django_assert_num_queries
    ):
        post(event(), signed={})
        with django_assert_num_queries(0):
            for _ in range(5):
                post(event(), signed={})
        assert Alert.objects.get().count == 1
        Pauses.end_all()
        post(event(), signed={})
        assert Alert.objects.get().count == 7
        Alert.objects.update(last_seen=Alert.objects.get().last_seen - timedelta(hours=2))
        alerts.close_quiet()
        assert Alert.objects.get().closed_at is not None

    @pytest.mark.parametrize(
        "body",
        [
            b"{",
            b"[]",
            b'{"a": NaN}',
            b"\xff",
            b"[" * 10_000,
            event(about=None),
            event(about="x" * 201),
            event(event_id=7),
            event(about="a\0"),
            event("x" * 101),
            event(charge="\ud800"),
            event(charge="\0"),
        ],
    )
    def test_body_that_cannot_be_read_is_refused(self, post, body):
        assert post(body).status_code == 400
        assert not TaskRequest.objects.exists()
        assert not Alert.objects.exists()

    def test_fault_of_the_agents_code_is_an_alert_and_the_sender_repeats(self, post, caplog):
        with caplog.at_level(logging.ERROR):
            answer = post(event("fault"))
        assert (answer.status_code, answer.content) == (500, b"Internal Server Error\n")
        assert "receive of bank failed" in caplog.text
        alert = Alert.objects.get()
        assert (alert.fingerprint, alert.severity) == ("webhook/bank/failing", "critical")
        assert post(event("broken")).status_code == 500

    def test_agent_without_receive_is_not_there(self, post):
        assert [post(event(), agent=name).status_code for name in ("quiet", "nobody")] == [404, 404]

    def test_only_post_is_taken(self, client):
        assert client.get("/hooks/bank/").status_code == 405

    def test_too_large_is_refused_unread(self, client):
        class Unread(BytesIO):
            def read(self, *_):
                raise AssertionError("it was read")

        for length, status in (("262145", 413), ("1" + "0" * 30, 413), ("-1", 411), ("", 411)):
            sent = {"CONTENT_LENGTH": length, "wsgi.input": Unread()}
            assert client.generic("POST", "/hooks/bank/", b"", **sent).status_code == status

    def test_database_that_is_away_has_it_repeated(self, post, monkeypatch):
        monkeypatch.setitem(connection.settings_dict, "PORT", "1")
        connection.close()
        answer = post(event())
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        monkeypatch.undo()
        connection.close()


class TestApplied:
    @pytest.fixture
    def order(self, run):
        return run.submit("w", {})

    def test_after_the_acceptance(self, run, order, post):
        run.go()
        assert order.steps == {"pay": "awaiting"}
        post(event())
        run.go()
        assert (order.state, order.result("pay")) == ("processed", {"id": "ch_1"})
        request = TaskRequest.objects.get()
        assert (request.workflow, request.reference, request.step) == ("w", order.reference, "pay")
        assert Event.objects.get(kind="reported").actor == "bank"

    def test_before_the_acceptance(self, run, order, post):
        post(event())
        run.go()  # nothing knows the id when the report is taken, as it comes first
        assert (order.state, requests()) == ("processed", [""])

    def test_before_it_and_taken_before_it(self, run, order, post):
        post(event())
        assert hooks_taken() == ["UNKNOWN_ID"]
        run.go()
        assert (order.state, requests()) == ("processed", [""])

    def test_kept_for_an_hour(self, run, order, post):
        post(event())
        assert hooks_taken() == ["UNKNOWN_ID"]
        TaskRequest.objects.update(created_at=run.clock.now - timedelta(seconds=3601))
        run.go()
        assert (order.steps, requests()) == ({"pay": "awaiting"}, ["UNKNOWN_ID"])

    def test_of_another_agent_is_not_taken(self, run, order, monkeypatch):
        class Other(Bank):
            name = "other"

        monkeypatch.setitem(registry.agents, "other", Other)
        run.go()
        api.complete(by=("other", "pi_1"), result={"id": "ch_1"}, actor="x", id=uuid4())
        run.go()
        assert (order.steps, requests()) == ({"pay": "awaiting"}, ["UNKNOWN_ID"])

    @pytest.mark.parametrize("early", [True, False])
    def test_first_of_contradicting_events_counts(self, run, order, post, early):
        if not early:
            run.go()
        post(event())
        post(event("declined", event_id="evt_2"))
        post(event(event_id="evt_3"))
        if early:
            assert hooks_taken() == ["UNKNOWN_ID"] * 3
        run.go()
        assert (order.state, requests()) == ("processed", ["", "REPORTED", ""])

    def test_refusal_then_success_does_not_end_it_twice(self, run, order, post):
        run.go()
        post(event("declined"))
        post(event(event_id="evt_2"))
        run.go()
        assert order.step("pay").error_code == "declined"
        assert requests() == ["", ""]  # the second is kept for a resubmit, which has another id

    def test_late_is_refused_and_not_lost(self, run, order, post):
        run.go()
        run.wait(86_401)
        assert order.step("pay").error_code == "late"
        post(event(), signed=headers(event(), now=run.clock.now.timestamp()))
        run.go()
        assert order.step("pay").state == "error"

    def test_of_a_task_being_undone(self, run, order, post):
        run.go()
        api.request_undo("w", order.reference, actor="ann", reason="no", id=uuid4())
        run.go()
        assert order.state == "undone"
        post(event())
        run.go()
        assert requests() == ["", "REPORTED"]

    def test_of_an_undo(self, run, order, post):
        run.script("bank.refund", outcomes.later(id="re_1"))
        run.go()
        api.request_undo("w", order.reference, actor="ann", reason="no", id=uuid4())
        run.go()
        assert order.state == "undoing"
        post(event())  # of the charge: it is not the refund's
        post(event(about="re_1", event_id="evt_2"))
        run.go()
        assert (order.state, requests()) == ("undone", ["", "REPORTED", ""])

    def test_of_an_earlier_request_ends_nothing(self, run, order, post):
        run.script("bank.charge", outcomes.later(id="pi_1"), outcomes.later(id="pi_2"))
        run.go()
        post(event("declined"))
        run.go()
        api.request_resubmit("w", order.reference, "pay", attempt=1, actor="ann", reason="again",
                             id=uuid4())  # fmt: skip
        run.go()
        assert order.steps == {"pay": "awaiting"}
        post(event(event_id="evt_2"))
        run.go()
        assert order.steps == {"pay": "awaiting"}
        assert requests()[-1] == "OTHER_ATTEMPT"
        post(event(about="pi_2", event_id="evt_3"))
        run.go()
        assert order.state == "processed"

    def test_result_of_another_shape_is_refused(self, run, order, declare, monkeypatch):
        monkeypatch.setattr(Bank.charge, "returns", {"type": "object", "required": ["id"]})
        run.go()
        api.complete(by=("bank", "pi_1"), result={}, actor="x", id=uuid4())
        run.go()
        assert (order.steps, requests()) == ({"pay": "awaiting"}, ["INVALID"])

    def test_twice_in_one_transaction(self, run, order):
        run.go()
        api.complete(by=("bank", "pi_1"), refused="declined", actor="x", id=uuid4(), message="no")
        run.go()
        assert order.step("pay").error_message == "no"


def test_report_of_what_is_accepted_while_its_task_is_being_undone():
    task = new_task("7")
    (request,) = claimed()
    assert request_undo("greet", "7", actor="ann", reason="no") is None
    accepted = reply_to(request, "later", result={}).altered(wait=Accepted(id="pi_1", look=None))
    assert replies.record([accepted]).accepted == 1
    assert step_of(task).process_state == "cancelled"
    assert ExternalId.objects.get().attempt == 1
    api.complete(by=("greeter", "pi_1"), result={"text": "x"}, actor="x", id=uuid4())
    assert hooks_taken() == ["", "REPORTED"]


def hooks_taken():
    """Take the reports as a submission process does, before any scheduler looks."""
    while task_requests.take(10).done:
        pass
    return requests()


class TestComplete:
    def test_needs_a_step_or_an_id(self, declare):
        with pytest.raises(TypeError):
            api.complete("w", "1", "pay", by=("bank", "pi_1"), result={}, actor="x", id=uuid4())
        with pytest.raises(InvalidWebhook):
            api.complete(by=("bank", ""), result={}, actor="x", id=uuid4())
        with pytest.raises(registry.NotRegistered):
            api.complete(by=("bnak", "pi_1"), result={}, actor="x", id=uuid4())
        assert not TaskRequest.objects.exists()


class TestVerify:
    def webhook(self, body=b"{}", **changed):
        stamp = changed.pop("stamp", str(int(time.time())))
        signature = signatures.standard(SECRET, "msg_1", stamp, b"{}")
        sent = {"webhook-id": "msg_1", "webhook-timestamp": stamp, "Webhook-Signature": signature}
        return api.Webhook(body=body, headers={**sent, **changed})

    def test_standard_webhooks(self):
        self.webhook().verify(SECRET)
        self.webhook().verify("", "another", SECRET)
        right = self.webhook().headers["webhook-signature"]
        self.webhook(**{"Webhook-Signature": f"v1,abc v1a,xyz {right}"}).verify(SECRET)

    @pytest.mark.parametrize(
        "changed",
        [
            {"body": b"{ }"},
            {"webhook-id": "msg_2"},
            {"webhook-id": ""},
            {"Webhook-Signature": "v1,"},
            {"stamp": "1"},
            {"stamp": "9" * 5000},
            {"stamp": "soon"},
        ],
    )
    def test_what_is_not_right(self, changed):
        with pytest.raises(UnverifiedWebhook):
            self.webhook(**changed).verify(SECRET)
        with pytest.raises(UnverifiedWebhook):
            self.webhook().verify("another")

    def test_without_a_secret_nothing_is_verified(self):
        for secrets in ((), ("",)):
            with pytest.raises(ValueError, match="no secret"):
                self.webhook().verify(*secrets)
            with pytest.raises(ValueError, match="no"):
                self.webhook().verify_stripe(*secrets)

    def test_signature_by_a_library_of_the_specification(self, monkeypatch):
        monkeypatch.setattr(clock, "now", lambda: 1792411200.0)
        api.Webhook(
            body=b'{"type":"user.created","object":"event","data":{"id":"user_1"}}',
            headers={
                "webhook-id": "msg_2abcDEF345ghiJKL678mnoPQR",
                "webhook-timestamp": "1792411200",
                "webhook-signature": "v1,Tz/poI407oaz/Q8PArkY0fi+Tafe4SBLzm9ytroNr9U=",
            },
        ).verify("whsec_ZWZmZWN0ZWQtc3ZpeC10ZXN0LWtleS0wMTIzNDU2Nzg5")
