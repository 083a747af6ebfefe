"""Ways round the second person, each tried by HTTP with real users; each is refused.

After each the same is checked: the big operation has not begun, and one person has not done more alone
than the limit, nor touched a payment. Below, the honest ways: none of them is in the way of people.
"""

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import CommandError, call_command

from orchestration.decisions.progress import Refusal
from orchestration.models import Event, Operation, SoloAct, Step, SupervisorPolicy, Task
from orchestration.models.fields import DatabaseNow
from orchestration.operations import lifecycle, runner
from orchestration.people import accounts, limits
from orchestration.people.person import Person
from orders.agents.payment import Payment
from tests.support.engine import irreversible, new_task, run_to_end
from tests.support.office import ALONE, Office, charge
from tests.support.operations import advance, begin, chosen, confirmed, failed, lead
from tests.support.operators import browser
from tests.support.page import page
from tests.support.sandbox import process
from tests.support.shop import declined, products
from tests.support.together import at_once

pytestmark = pytest.mark.django_db
BIG = ALONE + 1
AWAY = "http://127.0.0.1:9"  # nothing listens there


@pytest.fixture
def office(monkeypatch):
    monkeypatch.setattr(Payment, "base_url", AWAY)
    return Office()


@pytest.fixture
def big(office):
    """An operation by `ada`, too big for one person."""
    operation = office.operation("ada", failed(BIG))
    assert operation.state == "approval"
    return operation


def payment_in_error() -> Step:
    products()
    declined(browser())
    return Step.objects.get(name="authorize_payment", process_state="error")


def refused(answer, *statuses) -> None:
    assert answer.status_code in statuses, (answer.status_code, answer.text[:2000])


# --- being one's own second person ---------------------------------------------------------------
def own_approval(office, big):
    refused(office.approve("ada", big), 409)


def own_approval_in_two_sessions(office, big):
    first, second = office.browser("ada"), office.browser("ada")
    for client in (first, second, first):
        refused(client.post(f"/ops/operations/{big.id}/approve/"), 409)


def renaming_oneself(office, big):
    refused(office.edit("ada", office.users["ada"], username="ada2"), 403)
    refused(office.approve("ada", big), 409)


def being_renamed(office, big):
    assert office.edit("dan", office.users["ada"], username="ada2").status_code == 302
    refused(office.approve("ada2", big), 409)


def new_account_of_ones_own(office, big):
    office.create("ada", "eve", "lead")
    refused(office.approve("eve", big), 409)


def password_of_a_colleague(office, big):
    assert office.set_password("ada", office.users["lea"]).status_code == 302
    refused(office.approve("lea", big), 409)


def password_by_an_id_with_a_sign(office, big):
    assert office.set_password("ada", office.users["lea"], written="+{}").status_code == 302
    refused(office.approve("lea", big), 409)


def password_by_an_id_with_a_space(office, big):
    assert office.set_password("ada", office.users["lea"], written="%20{}").status_code == 302
    refused(office.approve("lea", big), 409)


def address_of_a_colleague(office, big):
    assert office.edit("ada", office.users["lea"], email="ada+2@example.org").status_code == 302
    refused(office.approve("lea", big), 409)


def rights_for_an_account_from_the_shop(office, big):
    eve = User.objects.create_user("eve@example.org", "eve@example.org")  # as by signing up
    assert office.edit("ada", eve, role="lead").status_code == 302
    refused(office.approve("eve@example.org", big), 409)


def account_of_an_account(office, big):
    office.create("ada", "eve", "admin")
    office.create("eve", "fay", "lead")
    refused(office.approve("fay", big), 409)


def two_accounts_of_one_admin(office, big):
    for name in ("eve", "fay"):
        office.create("ada", name, "lead")
    operation = office.operation("eve", failed(BIG))
    assert operation.state == "approval"
    refused(office.approve("fay", operation), 409)
    refused(office.approve("ada", operation), 409)


def confirming_ones_own_account(office, big):
    eve = office.create("ada", "eve", "admin")
    for by in ("ada", "eve"):
        office.vouch(by, eve)
    assert accounts.open_ties(eve.id)
    refused(office.approve("eve", big), 409)


def confirming_by_another_own_account(office, big):
    eve = office.create("ada", "eve", "lead")
    office.create("ada", "fay", "admin")
    office.vouch("fay", eve)
    assert accounts.open_ties(eve.id)
    refused(office.approve("eve", big), 409)


def confirmed_with_the_password_that_was_given(office, big):
    eve = office.create("ada", "eve", "lead")
    office.vouch("dan", eve)
    refused(office.approve("eve", big), 409)


def password_again_after_the_confirmation(office, big):
    eve = office.create("ada", "eve", "lead")
    eve.set_password("chosen by eve herself")
    eve.save()
    office.vouch("dan", eve)
    assert office.set_password("ada", eve).status_code == 302
    refused(office.approve("eve", big), 409)


def account_of_a_superuser(office, big):
    operation = office.operation("root", failed(BIG))
    office.create("root", "eve", "lead")
    refused(office.approve("eve", operation), 409)


def same_name_after_a_removal(office, big):
    office.users["ada"].delete()
    office.employ("ada", "lead")
    refused(office.approve("ada", big), 409)


def session_of_a_deactivated_lead(office, big):
    client = office.browser("lea")
    User.objects.filter(username="lea").update(is_active=False)
    refused(client.post(f"/ops/operations/{big.id}/approve/"), 302)


def session_of_a_former_lead(office, big):
    client = office.browser("lea")
    office.users["lea"].groups.clear()
    refused(client.post(f"/ops/operations/{big.id}/approve/"), 403)


def rights_that_end_meanwhile(office, big):
    lea = Person.of(office.users["lea"])
    User.objects.filter(username="lea").update(is_active=False)
    assert lifecycle.approve(big.id, actor=lea) is Refusal.NOT_PERMITTED


def operator_approves(office, big):
    refused(office.approve("ann", big), 403)


def approval_by_get(office, big):
    refused(office.browser("lea").get(f"/ops/operations/{big.id}/approve/"), 405)


def forged_actor(office, big):
    forged = {"actor": "lea", "actor_user": office.users["lea"].id, "approved_by": "lea"}
    refused(office.approve("ada", big, **forged), 409)


def approval_by_command(office, big):
    with pytest.raises(CommandError):
        call_command("operations", "approve", str(big.id), "--actor", "lea")
    assert lifecycle.approve(big.id, actor=Person(name="lea")) is Refusal.NOT_SIGNED_IN


def operation_by_command_under_ones_own_name(office, big):
    operation = confirmed(failed(BIG), actor="ada")
    refused(office.approve("ada", operation), 409)


def approval_by_the_api(office, big):
    for address in ("/api/operations/", f"/api/operations/{big.id}/approve"):
        refused(office.browser("ada").post(address), 404)


def resuming_what_waits(office, big):
    for what in ("resume", "pause", "confirm", "look"):
        refused(office.post("ada", f"operation_{what}", big.id, reason="x"), 409, 422)


# --- doing more alone than the limit -------------------------------------------------------------
def many_small_operations(office, big):
    for _ in range(ALONE):
        assert office.operation("ada", failed(1)).state == "waiting"
    assert office.operation("ada", failed(1)).state == "approval"


def samples(office, big):
    tasks = failed(BIG + 1)
    for state in ("waiting", "waiting", "approval"):
        assert office.operation("ada", tasks, first="sample").state == state


def undos_one_by_one(office, big):
    for task in [new_task() for _ in range(BIG)]:
        assert office.undo("ada", task).status_code == 303
    assert Task.objects.filter(undo_at__isnull=False).count() == ALONE


def undos_after_an_operation(office, big):
    assert office.operation("ada", [new_task() for _ in range(ALONE)], "hold").state == "waiting"
    office.undo("ada", new_task())
    assert not Task.objects.filter(undo_at__isnull=False).exists()


def done_by_hand_one_by_one(office, big):
    steps = [task.steps.get(name="hello") for task in failed(BIG)]
    for step in steps:
        assert office.by_hand("ada", step, id="g1").status_code == 303
    assert Step.objects.exclude(done_by="").count() == ALONE


def changes_one_by_one(office, big):
    steps = [task.steps.get(name="hello") for task in failed(BIG)]
    for step in steps:
        assert office.change("ada", step, to="Grace").status_code == 303
    assert Step.objects.filter(request={"to": "Grace"}).count() == ALONE


def two_accounts_share_the_work(office, big):
    office.create("ada", "eve", "operator")
    assert office.operation("eve", failed(ALONE)).state == "waiting"
    assert office.operation("ada", failed(1)).state == "approval"


def names_in_a_shell(office, big):
    for number in range(BIG):
        operation = confirmed(failed(1), actor=f"user-{number}")
    assert operation.state == "approval"


def aborting_to_begin_anew(office, big):
    operation = office.operation("ada", failed(ALONE))
    begin(operation)
    advance(operation)
    office.post("ada", "operation_abort", operation.id)
    assert office.operation("ada", failed(1)).state == "approval"


def raising_the_limit(office, big):
    assert office.limit("ada", approve_items=5000).status_code == 302
    assert SupervisorPolicy.objects.get().approve_items == 5000
    assert office.operation("ada", failed(BIG)).state == "approval"


def emptying_the_limits_in_steps(office, big):
    for value in ("", "1", ""):
        office.limit("ada", approve_items=value)
    assert SupervisorPolicy.objects.get().approve_items is None
    assert office.operation("ada", failed(BIG)).state == "approval"


def raising_the_limit_by_an_own_account(office, big):
    office.create("ada", "eve", "admin")
    assert office.limit("eve", approve_items=5000).status_code == 302
    assert office.operation("ada", failed(BIG)).state == "approval"


def more_after_the_preview(office, big):
    operation = office.draft("ada", query="q=state:error error:other")
    failed(BIG, "other")
    refused(office.confirm("ada", operation, shown="0"), 409)


def more_after_the_confirmation(office, big):
    operation = office.draft("ada", query="q=error:late")
    failed(ALONE, "late")
    refused(office.confirm("ada", operation), 409)
    office.confirm("ada", operation)
    failed(BIG, "late")
    begin(operation)
    advance(operation)
    assert operation.items == ALONE


def sum_in_small_parts(office, big):
    office.limit("dan", approve_sum=5000)
    for state in ("waiting", "approval"):
        tasks = failed(1)
        Step.objects.filter(task__in=tasks, name="hello").update(
            charges={"amount": 3000, "currency": "EUR"}
        )
        assert office.operation("ann", tasks).state == state


# --- forcing, and rights ---------------------------------------------------------------------------
def force_of_another(office, big):
    operation = office.draft("ann", [irreversible(new_task())], "undo")
    office.post("lea", "operation_look", operation.id, force="on")
    refused(office.confirm("ann", operation, force="on"), 403)


def force_after_the_look(office, big):
    task = irreversible(new_task())
    operation = office.draft("lea", [task], "undo")
    office.post("lea", "operation_look", operation.id, force="on")
    mallory = Person.of(office.users["ann"])
    refusal = lifecycle.confirm(
        operation.id, chosen([task], forced=True), actor=mallory, reason="x", rate=1.0
    )
    assert refusal is Refusal.NOT_PERMITTED


def force_that_was_not_shown(office, big):
    operation = office.draft("ann", [irreversible(new_task())], "undo")
    refused(office.confirm("ann", operation, force="on"), 403)


def rights_for_oneself(office, big):
    ada = office.users["ada"]
    power = Group.objects.create(name="everything")
    refused(office.edit("ada", ada, is_superuser="on", groups=[power.id]), 403)
    refused(office.set_password("ada", ada), 403)
    assert [group.name for group in ada.groups.all()] == ["admin"]


def role_with_more_rights_than_ones_own(office, big):
    more = Permission.objects.get(codename="delete_user")
    Group.objects.get(name="lead").permissions.add(more)
    eve = User.objects.create_user("eve")
    refused(office.edit("ada", eve, role="lead"), 200)  # the form again, with an error
    assert not eve.groups.exists()
    for answer in (
        office.edit("ada", office.users["lea"], email="ada@example.org"),
        office.set_password("ada", office.users["lea"]),
        office.set_password("ada", office.users["root"]),
    ):
        refused(answer, 403)


# --- payments ----------------------------------------------------------------------------------------
def amount_above_the_order(office, big):
    changed(office, amount=999_999)


def amount_of_a_cent(office, big):
    changed(office, amount=1)


def another_order(office, big):
    changed(office, order="00000000-0000-0000-0000-000000000001")


def card_of_another(office, big):
    changed(office, payment_method="pm_card_mastercard")


def another_currency(office, big):
    changed(office, currency="JPY")


def changed(office, **changes):
    """Change the request of a payment: it waits, and its own author cannot approve it."""
    step = payment_in_error()
    assert office.change("ada", step, **changes).status_code == 303
    waits(office, step)


def waits(office, step, by="ada") -> Operation:
    """Assert that an act on a step waits for another person; return its operation."""
    operation = Operation.objects.latest("id")
    assert (operation.state, operation.items) == ("approval", 1)
    before = step.request
    step.refresh_from_db()
    assert (step.process_state, step.request) == ("error", before)
    refused(office.approve(by, operation), 409 if by == "ada" else 403)
    return operation


def payment_anew_although_in_doubt(office, big):
    step = payment_in_error()
    Step.objects.filter(id=step.id).update(in_doubt=True, outcome="unknown")
    assert office.change("ada", step, nothing_done="on").status_code == 303
    waits(office, step)


def invented_payment_while_the_service_is_away(office, big):
    step = payment_in_error()
    assert office.by_hand("ada", step, id="pi_fake", status="requires_capture").status_code == 303
    waits(office, step)


def invented_payments_in_bulk(office, big):
    step = payment_in_error()
    result = '{"id": "pi_fake", "status": "requires_capture"}'
    operation = office.draft("ada", [step.task], "by_hand")
    assert office.confirm("ada", operation, result=result).status_code == 303
    waits(office, step)


def payment_by_command(office, big):
    step = payment_in_error()
    result = '{"id": "pi_fake", "status": "requires_capture"}'
    words = ("--reason", "x", "--actor", "ada")
    call_command("tasks", "done", str(step.id), "--result", result, *words)
    waits(office, step)


ATTACKS = [
    own_approval, own_approval_in_two_sessions, renaming_oneself, being_renamed,
    new_account_of_ones_own, password_of_a_colleague,
    password_by_an_id_with_a_sign, password_by_an_id_with_a_space, address_of_a_colleague,
    rights_for_an_account_from_the_shop, account_of_an_account, two_accounts_of_one_admin,
    confirming_ones_own_account, confirming_by_another_own_account,
    confirmed_with_the_password_that_was_given, password_again_after_the_confirmation,
    account_of_a_superuser, same_name_after_a_removal, session_of_a_deactivated_lead,
    session_of_a_former_lead, rights_that_end_meanwhile, operator_approves,
    approval_by_get, forged_actor, approval_by_command, operation_by_command_under_ones_own_name,
    approval_by_the_api, resuming_what_waits,
    many_small_operations, samples, undos_one_by_one, undos_after_an_operation,
    done_by_hand_one_by_one, changes_one_by_one, two_accounts_share_the_work, names_in_a_shell,
    aborting_to_begin_anew, raising_the_limit, emptying_the_limits_in_steps,
    raising_the_limit_by_an_own_account, more_after_the_preview, more_after_the_confirmation,
    sum_in_small_parts,
    force_of_another, force_after_the_look, force_that_was_not_shown, rights_for_oneself,
    role_with_more_rights_than_ones_own,
    amount_above_the_order, amount_of_a_cent, another_order, card_of_another, another_currency,
    payment_anew_although_in_doubt, invented_payment_while_the_service_is_away,
    invented_payments_in_bulk, payment_by_command,
]  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_way_round_the_second_person_is_refused(office, big, attack):
    attack(office, big)
    Operation.objects.update(starts_at=DatabaseNow())
    runner.advance(lead(), reach=3600.0)
    big.refresh_from_db()
    assert (big.state, big.approved_by, big.approved_by_user) == ("approval", "", None)
    assert not big.item_set.exclude(state="waiting").exists()
    for name in ("ada", "eve", "fay"):
        for user in User.objects.filter(username=name):
            assert limits.day_of(Person.of(user)).items <= ALONE
    authorized = Step.objects.filter(name="authorize_payment")
    assert not authorized.exclude(process_state="error").exists()
    assert not Operation.objects.exclude(approval="").exclude(state__in=["draft", "approval"])


# --- at the same moment --------------------------------------------------------------------------------
@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    @pytest.fixture
    def office(self, office):
        return office

    def test_confirmations_of_one_person_do_not_slip_below_the_limit(self, office):
        drafts = [office.draft("ada", failed(1)) for _ in range(BIG + 1)]
        at_once({op.id: lambda op=op: office.confirm("ada", op).status_code for op in drafts})
        states = list(Operation.objects.values_list("state", flat=True))
        assert (states.count("waiting"), states.count("approval")) == (ALONE, 2)

    def test_acts_on_single_tasks_do_not_slip_below_the_limit(self, office):
        tasks = [new_task() for _ in range(BIG + 1)]
        at_once({task.id: lambda task=task: office.undo("ada", task).status_code for task in tasks})
        assert Task.objects.filter(undo_at__isnull=False).count() == ALONE

    def test_approvals_at_once_count_once_and_never_for_oneself(self, office):
        operation = office.operation("ada", failed(BIG))
        names = ["ada", "ada", "lea", "dan", "lea", "ada"]
        answers = at_once(
            {
                number: lambda name=name: office.approve(name, operation).status_code
                for number, name in enumerate(names)
            }
        )
        assert sorted(answers.values()) == [303, 409, 409, 409, 409, 409]
        operation.refresh_from_db()
        assert operation.approved_by in {"lea", "dan"}
        assert Event.objects.filter(detail__what="approved").count() == 1


# --- honest ways -----------------------------------------------------------------------------------
def test_lead_approves_what_another_user_asked_for(office, big):
    assert office.approve("lea", big).status_code == 303
    big.refresh_from_db()
    lea, ada = office.users["lea"], office.users["ada"]
    assert (big.actor_user, big.approved_by_user) == (ada.id, lea.id)
    begin(big)
    advance(big)
    assert advance(big).sent == BIG
    # what a second person approved is not what one did alone
    assert limits.day_of(Person.of(ada)).items == 0


def test_colleagues_account_counts_once_another_admin_has_confirmed_it(office, big):
    eve = office.create("ada", "eve", "lead")
    shown = page(office.browser("eve").get(f"/ops/operations/{big.id}/"))
    assert shown.only("[data-unconfirmed]")
    eve.set_password("chosen by eve herself")
    eve.save()
    assert office.vouch("dan", eve).status_code == 302
    assert accounts.open_ties(eve.id) == []
    assert office.approve("eve", big).status_code == 303


def test_accounts_that_a_superuser_made_are_two_persons(office):
    for name, role in (("eve", "operator"), ("fay", "lead")):
        office.create("root", name, role)
    operation = office.operation("eve", failed(BIG))
    assert office.approve("fay", operation).status_code == 303


def test_limit_that_another_admin_raised_holds_at_once(office):
    office.limit("dan", approve_items=BIG)
    assert office.operation("ann", failed(BIG)).state == "waiting"


def test_next_day_counts_anew(office):
    office.operation("ann", failed(ALONE))
    SoloAct.objects.update(at=DatabaseNow() - limits.KEPT_FOR)
    assert office.operation("ann", failed(ALONE)).state == "waiting"
    assert limits.prune() == 1


def test_cancelled_operation_does_not_count(office):
    operation = office.operation("ann", failed(ALONE))
    office.post("ann", "operation_abort", operation.id)
    assert office.operation("ann", failed(ALONE)).state == "waiting"


def test_plain_resubmits_need_no_second_person(office):
    steps = [task.steps.get(name="hello") for task in failed(BIG)]
    for step in steps:
        assert office.resubmit("ann", step).status_code == 303
    assert Step.objects.filter(name="hello", process_state="pending").count() == BIG
    # they count for what comes next
    shown = page(office.browser("ann").get(f"/ops/operations/{office.draft('ann', failed(1)).id}/"))
    assert shown.only("[data-day]")["data-day"] == str(BIG)
    assert shown.only("#approval")


def test_approved_change_is_sent(office):
    step = payment_in_error()
    office.change("ann", step, amount=1500)
    operation = waits(office, step, "ann")
    shown = page(office.browser("lea").get(f"/ops/operations/{operation.id}/"))
    assert shown.only("#change").texts("ins") == ["1500"]
    assert office.approve("lea", operation).status_code == 303
    begin(operation)
    advance(operation)
    step.refresh_from_db()
    assert (step.process_state, step.request["amount"], step.generation) == ("pending", 1500, 2)
    event = Event.objects.get(step=step, kind="resubmitted")
    assert (event.actor, event.operation_id) == ("ann", operation.id)


def test_refused_change_changes_nothing(office):
    step = payment_in_error()
    office.change("ann", step, amount=1500)
    operation = waits(office, step, "ann")
    assert office.post("lea", "operation_abort", operation.id, reason="no").status_code == 303
    assert office.resubmit("ann", step).status_code == 303


def test_change_of_what_is_not_guarded_needs_one_person(office):
    step = failed(1)[0].steps.get(name="hello")
    assert office.change("ann", step, to="Grace").status_code == 303
    step.refresh_from_db()
    assert (step.process_state, step.request) == ("pending", {"to": "Grace"})


class TestByHandAtTheService:
    @pytest.fixture
    def port(self, office, tmp_path, monkeypatch):
        with process(tmp_path) as (_, port):
            monkeypatch.setattr(Payment, "base_url", f"http://127.0.0.1:{port}")
            yield port

    def test_payment_that_the_service_shows_is_taken(self, office, port):
        step = payment_in_error()
        asked = step.request
        payment = charge(
            port, "by-hand-1", amount=asked["amount"], **{"metadata[order]": asked["order"]}
        )
        assert office.by_hand("ann", step, id=payment, status="requires_capture").status_code == 303
        step.refresh_from_db()
        assert (step.process_state, step.result["id"]) == ("processed", payment)

    @pytest.mark.parametrize("wrong", ["amount", "order", "unknown"])
    def test_payment_that_is_not_the_orders_is_refused(self, office, port, wrong):
        step = payment_in_error()
        asked = step.request
        amount = 1 if wrong == "amount" else asked["amount"]
        order = "another" if wrong == "order" else asked["order"]
        payment = charge(port, "by-hand-1", amount=amount, **{"metadata[order]": order})
        if wrong == "unknown":
            payment = "pi_fake"
        answer = office.by_hand("ann", step, id=payment, status="requires_capture")
        assert answer.status_code == 422
        assert page(answer).only("#id_payload_error")
        step.refresh_from_db()
        assert step.process_state == "error"
        assert not Operation.objects.exists()

    def test_payment_without_an_order_waits_for_a_second_person(self, office, port):
        step = payment_in_error()
        payment = charge(
            port, "by-hand-1", amount=step.request["amount"], **{"metadata[order]": ""}
        )
        office.by_hand("ann", step, id=payment, status="requires_capture")
        operation = waits(office, step, "ann")
        assert office.approve("lea", operation).status_code == 303
        begin(operation)
        advance(operation)
        step.refresh_from_db()
        assert (step.process_state, step.result["id"]) == ("processed", payment)


def test_undo_of_a_finished_task_alone(office):
    task = new_task()
    run_to_end(task)
    assert office.undo("ann", task).status_code == 303
    task.refresh_from_db()
    assert task.state == "undoing"
