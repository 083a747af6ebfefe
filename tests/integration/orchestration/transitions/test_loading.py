"""A workflow loads what a request needs when it is sent: nothing personal is copied into its task (P22)."""

import json

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.urls import reverse

from orchestration import conf, registry, scheduler, submission
from orchestration.declarations.workflows import own_problems
from orchestration.messaging import queues
from orchestration.models import StatusMessage, Step, Submission, Task
from orchestration.models.fields import DatabaseNow
from orchestration.payloads.placeholders import field, key, loaded
from orchestration.people.redaction import HIDDEN
from orchestration.transitions.holds import hold
from orchestration.transitions.resubmit import done_by_hand, resubmit
from orchestration.transitions.undo import undo
from orchestration.workflows.step import Step as Declared
from orchestration.workflows.workflow import Workflow
from orders.models import Order
from tests.support.engine import new_task, reply_to, staff, step_of
from tests.support.operators import browser, operator, person
from tests.support.shop import buy, products

pytestmark = pytest.mark.django_db
STREET = "Rue de Lyon 12"


class Rows(dict):
    """The rows of an application, by reference; `asked` are the calls that its workflow loaded by."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def load(self, references):
        self.asked.append(list(references))
        for reference in references:
            if callable(self.get(reference)):
                self[reference]()
        return {name: {"address": self[name]} for name in references if name in self}


class Address(dict):
    """An address; something happens while it is loaded."""

    def __init__(self, act):
        super().__init__(street=STREET)
        self.act = act

    def __call__(self):
        self.act()


@pytest.fixture
def rows(monkeypatch):
    staff()
    address_rows = Rows()
    take_back = {"key": key("send"), "street": loaded("address", "street")}
    workflow = Workflow(
        name="post",
        load=address_rows.load,
        private=["address"],
        steps=[
            Declared(
                name="send", agent="greeter", action="greet", undo="take_back",
                undo_request=take_back,
                request={"what": field("what"), "to": [loaded("address", "street")]},
            ),
            Declared(
                name="announce", agent="greeter", action="greet", after=["send"], undo=None,
                request={"to": loaded("address")},
            ),
        ],
    )  # fmt: skip
    assert own_problems(workflow) == []
    monkeypatch.setitem(registry.workflows, "post", workflow)
    return address_rows


def posted(reference="1"):
    return new_task(reference, workflow="post", data={"what": "tea"})


def turn(*replies):
    """Have a scheduler take a turn; return the requests that it sent to the agent."""
    scheduler.run_once("scheduler-1", [reply.dump() for reply in replies], {"greeter"})
    return [json.loads(raw) for raw in queues.take("greeter", conf.BATCH_SIZE, 0)]


def back():
    """Have a scheduler record its own replies to requests that it could not send."""
    scheduler.run_once("scheduler-1", queues.take(queues.SCHEDULER, conf.BATCH_SIZE, 0), set())


def as_request(task, name="send"):
    """Return what `reply_to` needs of the request that a step is at."""
    step = step_of(task, name)

    class Sent:
        attempt, generation = step.attempt, step.generation
        dispatch = int(step.dispatched_at.timestamp() * 1_000_000)

    Sent.step, Sent.task = step.id, str(task.id)
    return Sent


def again(task, name="send"):
    """Let a failed attempt be tried again at once."""
    Step.objects.filter(task=task, name=name, process_state="processing").update(
        process_state="pending", locked_by=None, complete_by=None
    )


def test_request_has_the_data_loaded_when_it_is_sent(rows):
    rows["1"] = {"street": STREET, "city": "Genève"}
    task = posted()
    (sent,) = turn()
    assert sent["payload"] == {"what": "tea", "to": [STREET]}
    rows["1"] = {"street": "Rue Neuve 1", "city": "Genève"}  # it is corrected meanwhile
    (sent,) = turn(reply_to(as_request(task)))
    assert sent["payload"] == {"to": {"street": "Rue Neuve 1", "city": "Genève"}}


def test_batch_is_loaded_by_one_call(rows):
    rows |= {name: {"street": name} for name in "abc"}
    for name in "abc":
        posted(name)
    assert [sent["payload"]["to"] for sent in turn()] == [["a"], ["b"], ["c"]]
    assert rows.asked == [["a", "b", "c"]]


def test_retry_under_the_same_key_has_the_same_content(rows):
    rows["1"] = {"street": STREET}
    task = posted()
    (first,) = turn()
    rows["1"] = {"street": "Rue Neuve 1"}
    again(task)
    (second,) = turn()
    assert (second["key"], second["payload"]) == (first["key"], first["payload"])
    assert rows.asked == [["1"]]


def test_request_under_a_new_key_is_loaded_again(rows):
    rows["1"] = {"street": STREET}
    task = posted()
    turn()
    turn(reply_to(as_request(task), "rejected"))
    rows["1"] = {"street": "Rue Neuve 1"}
    assert resubmit(step_of(task, "send").id, attempt=1, actor="ada", reason="corrected") is None
    (sent,) = turn()
    assert sent["payload"]["to"] == ["Rue Neuve 1"]
    assert sent["generation"] == 2


def everything(task):
    """Return all that the state store holds of a task, as text."""
    tables = ("task", "step", "attempt", "event", "statusmessage")
    with connection.cursor() as cursor:
        records = []
        for table in tables:
            which = "id" if table == "task" else "task_id"
            if table == "attempt":
                which = "(SELECT task_id FROM orchestration_step s WHERE s.id = step_id)"
            cursor.execute(f"SELECT * FROM orchestration_{table} WHERE {which} = %s", [task.id])
            records += cursor.fetchall()
    return repr(records)


@pytest.mark.parametrize("by_hand", [False, True])
def test_loaded_data_is_removed_once_the_steps_have_ended(rows, by_hand):
    rows["1"] = {"street": STREET}
    data = {"what": "tea", "address": {"street": STREET}}
    Submission.objects.create(workflow="post", reference="1", data=data)
    submission.take(10)
    task = Task.objects.get(reference="1")
    assert task.data == {"what": "tea"}
    turn()
    assert STREET in everything(task)  # while a repeat may need it
    if by_hand:
        turn(reply_to(as_request(task), "rejected"))
        step = step_of(task, "send")
        done_by_hand(step.id, attempt=1, actor="ada", reason="by phone", result={"id": "x"})
        turn()
    else:
        turn(reply_to(as_request(task)))
    assert step_of(task, "announce").locked_by is not None
    turn(reply_to(as_request(task, "announce")))
    task.refresh_from_db()
    assert task.state == "processed"
    assert STREET not in everything(task)


def test_loaded_data_of_a_cancelled_step_is_removed(rows):
    rows["1"] = {"street": STREET}
    task = posted()
    turn()
    Step.objects.filter(task=task, name="send").update(
        process_state="pending", locked_by=None, complete_by=None, in_doubt=False
    )
    undo(task.id, actor="ada", reason="not wanted")
    assert step_of(task, "send").process_state == "cancelled"
    assert STREET not in everything(task)


def test_undo_loads_its_data(rows):
    rows["1"] = {"street": STREET}
    task = posted()
    turn()
    turn(reply_to(as_request(task)))
    turn(reply_to(as_request(task, "announce"), "rejected"))
    undo(task.id, actor="ada", reason="not wanted")
    rows["1"] = {"street": "Rue Neuve 1"}
    (sent,) = turn()
    assert sent["action"] == "take_back"
    assert sent["payload"]["street"] == "Rue Neuve 1"


def test_posting_the_same_again_is_posting_once(rows):
    rows["1"] = {"street": STREET}
    data = {"what": "tea", "address": {"street": STREET}}
    for _ in range(2):
        Submission.objects.create(workflow="post", reference="1", data=data)
        submission.take(10)
    assert Task.objects.count() == 1
    assert not Submission.objects.exists()


class TestFailures:
    def test_failed_load_fails_one_step_and_the_others_are_sent(self, rows):
        def fail():
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 / 0")

        rows |= {"good": {"street": STREET}, "bad": fail}
        bad, good = posted("bad"), posted("good")
        assert [sent["reference"] for sent in turn()] == ["good"]
        back()
        step = step_of(bad, "send")
        assert (step.process_state, step.locked_by) == ("processing", None)  # for the supervisor
        assert (step.outcome, step.error_code) == ("transient", "load_failed")
        assert "division by zero" in step.error_message
        assert step.own_trouble
        assert step_of(good, "send").locked_by == "scheduler-1"

    @pytest.mark.parametrize(
        ("row", "why"),
        [
            ({"road": STREET}, "what was loaded has no address.street"),
            (None, "what was loaded has no address.street"),
            ({"street": "x" * 300_000}, "the request cannot be sent: it has"),
            ({"street": object()}, "not JSON serializable"),
        ],
    )
    def test_missing_loaded_field_is_an_error_at_once(self, rows, row, why):
        if row is not None:
            rows["1"] = row
        task = posted()
        assert turn() == []
        back()
        step = step_of(task, "send")
        assert (step.process_state, step.error_code) == ("error", "not_loaded")
        assert why in step.error_message
        assert not step.in_doubt

    def test_step_that_this_code_cannot_load_is_left_to_other_code(self, rows, monkeypatch):
        rows["1"] = {"street": STREET}
        task = posted()
        declared = registry.workflows["post"]
        monkeypatch.delitem(registry.workflows, "post")
        assert turn() == []
        back()
        assert step_of(task, "send").error_code == "no_such_load"
        monkeypatch.setitem(registry.workflows, "post", declared)
        again(task)
        (sent,) = turn()
        assert sent["payload"]["to"] == [STREET]

    def test_step_cancelled_while_it_was_loaded_is_not_sent(self, rows):
        task = posted()
        rows["1"] = Address(lambda: again(task))
        assert turn() == []
        assert step_of(task, "send").loaded is None


def test_entered_input_replaces_loaded_data(rows):
    rows["1"] = {"road": STREET}
    task = posted()
    turn()
    back()
    step = step_of(task, "send")
    changed = {"what": "tea", "to": ["Rue Neuve 1"]}
    assert resubmit(step.id, attempt=1, actor="ada", reason="typed", request=changed) is None
    (sent,) = turn()
    assert sent["payload"] == changed


def test_page_of_many_tasks_loads_once(rows):
    tasks = [posted(reference) for reference in ("1", "2", "3")]
    for task in tasks:
        rows[task.reference] = {"street": STREET}
        hold(task=task.id, actor="ann", reason=f"at {STREET}")
    StatusMessage.objects.bulk_create(
        StatusMessage(
            reply_to="shop", task=task, workflow="post", reference=task.reference, number=9,
            kind="received", refused_at=DatabaseNow(), reason=f"unknown: {STREET}",
        )
        for task in tasks
    )  # fmt: skip
    client = browser(person("bob", "operate"))
    # what people typed is hidden whole, so for the holds nothing is loaded
    for name, loads in (("ops:agents", []), ("ops:dead_letters", [["1", "2", "3"]])):
        rows.asked.clear()
        page = client.get(reverse(name)).text
        assert page.count(HIDDEN) >= 3
        assert STREET not in page
        assert [sorted(asked) for asked in rows.asked] == loads


def test_operator_sees_which_fields_are_loaded_when_sent(rows, client):
    rows["1"] = {"street": STREET}
    task = posted()
    turn()
    client.force_login(get_user_model().objects.create_superuser("root"))
    page = client.get(f"/ops/tasks/{task.id}/").content.decode()
    assert "«address.street, loaded on dispatch»" in page
    assert "«address, loaded on dispatch»" in page  # of the step that waits
    assert STREET not in page


@pytest.mark.django_db(transaction=True)
def test_application_loads_without_any_lock_of_the_engine(rows):
    def look():
        assert not transaction.get_connection().savepoint_ids
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND mode LIKE 'Row%%'"
            )
            locks.append(cursor.fetchone()[0])

    locks = []
    rows["1"] = Address(look)
    posted()
    assert len(turn()) == 1
    assert locks == [0]


class TestTheShop:
    """Its tasks have no address; what its agents are sent is of the order's row."""

    @pytest.fixture
    def order(self, client):
        products()
        order = buy(client)
        submission.take(10)
        return order

    def test_task_of_an_order_has_neither_address_nor_customer(self, order):
        task = Task.objects.get(reference=str(order))
        assert task.data.keys() & {"address", "customer"} == set()
        assert STREET not in everything(task)
        assert Order.objects.get(id=order).street == STREET

    def test_a_corrected_address_reaches_the_next_step(self, order):
        task = Task.objects.get(reference=str(order))
        stock, payment = sent_to(["inventory", "payment"])
        answer(stock, {"id": "r_1"})
        Order.objects.filter(id=order).update(street="Rue Neuve 1", email="new@example.org")
        answer(payment, {"id": "p_1"})
        (sent,) = sent_to(["shipping"])
        assert sent["payload"]["address"]["street"] == "Rue Neuve 1"
        answer(sent, {"id": "s_1", "tracking": "TRK1"})
        (sent,) = sent_to(["payment"])
        answer(sent, {"id": "c_1"})
        (sent,) = sent_to(["notification"])
        assert sent["payload"]["to"] == "new@example.org"
        answer(sent, {"id": "m_1"})
        sent_to(["notification"])
        task.refresh_from_db()
        assert task.state == "processed"
        assert "Rue Neuve 1" not in everything(task)

    def test_messages_of_partners_are_redacted_without_permission(self, order, client):
        for sent in sent_to(["inventory", "payment"]):
            answer(sent, {"id": "x_1"})
        (sent,) = sent_to(["shipping"])
        answer(sent, {}, outcome="rejected", code="no_such_street", message=f"{STREET}: unknown")
        task = Task.objects.get(reference=str(order))
        client = operator()
        for page in (f"/ops/tasks/{task.id}/", "/ops/tasks/?q=" + str(order), "/ops/incidents/"):
            assert STREET not in client.get(page).content.decode()


def sent_to(agents):
    """Have a scheduler look; return the requests that these agents are sent, of orders only."""
    scheduler.run_once(
        "scheduler-1", queues.take(queues.SCHEDULER, conf.BATCH_SIZE, 0), set(agents)
    )
    raw = [message for agent in agents for message in queues.take(agent, conf.BATCH_SIZE, 0)]
    requests = [json.loads(message) for message in raw]
    return [sent for sent in requests if "order" in sent["payload"] or "payment" in sent["payload"]]


def answer(sent, result, **fields):
    """Have a scheduler record the answer to a request."""
    known = {name: sent[name] for name in ("step", "task", "attempt", "generation", "dispatch")}
    request = type("Sent", (), known)
    reply_fields = {"outcome": "done", "result": result, **fields}
    reply = reply_to(request, reply_fields.pop("outcome"), **reply_fields)
    scheduler.run_once("scheduler-1", [reply.dump()], set())
