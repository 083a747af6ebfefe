"""What the audit says of steps that were skipped, and of those that were done by hand."""

import pytest

from orchestration.models import Event, Step, Task
from tests.support.audit_rows import no_route, orders
from tests.support.engine import in_error
from tests.support.violations import plant, violations

pytestmark = pytest.mark.django_db

LAST = "send_confirmation"
FLOW = '{"refused": {"no_route": "pass"}}'
REFUSED = (
    "process_state = 'skipped', outcome = 'rejected', error_code = 'no_route', result = NULL, "
    f"flow = '{FLOW}'"
)
CONDITION = '{"when": {"$from": ["", "mail"]}}'


@pytest.fixture
def rows():
    """Twenty orders at every stage, and the partners' ledgers."""
    made = orders(20, no_route())
    made.write()
    made.did(
        "inventory", "mug", None, "level", None,
        {"start": 50, "on_hand": 32, "reserved": 1, "shipped": 17},
    )  # fmt: skip
    return made


@pytest.fixture
def order(rows):
    """The reference of an order whose mail was refused, which its workflow passes over."""
    reference = rows.orders["processed"]
    change(reference, REFUSED)
    change_attempt(reference, "outcome = 'rejected', error_code = 'no_route'")
    entries = rows.ledger["notification"]
    rows.ledger["notification"] = [entry for entry in entries if entry.reference != reference]
    return reference


def change(reference, columns, name=LAST, direction="do"):
    plant(
        f"UPDATE orchestration_step s SET {columns} FROM orchestration_task t WHERE t.id = s.task_id"
        " AND t.reference = %(order)s AND s.name = %(name)s AND s.direction = %(direction)s",
        order=reference, name=name, direction=direction,
    )  # fmt: skip


def change_attempt(reference, columns, name=LAST):
    plant(
        f"UPDATE orchestration_attempt a SET {columns} FROM orchestration_step s, orchestration_task t"
        " WHERE s.id = a.step_id AND t.id = s.task_id AND t.reference = %(order)s AND s.name = %(name)s",
        order=reference, name=name,
    )  # fmt: skip


def never_sent(reference, columns):
    """Have the mail be skipped as by a condition: it was never sent out."""
    plant(
        "DELETE FROM orchestration_attempt a USING orchestration_step s, orchestration_task t"
        " WHERE s.id = a.step_id AND t.id = s.task_id AND t.reference = %(order)s AND s.name = %(name)s",
        order=reference, name=LAST,
    )  # fmt: skip
    unsent = "attempt = 0, outcome = '', error_code = '', dispatched_at = NULL, result = NULL"
    change(reference, f"process_state = 'skipped', {unsent}, {columns}")


def blamed(rows):
    return {(breach.invariant, breach.reference) for breach in violations(rows)}


def did_the_mail(rows, reference):
    task = Task.objects.get(reference=reference)
    rows.did("notification", reference, f"{task.id}:{LAST}:do:1", "send")


def test_refusal_that_is_passed_over_is_not_found(rows, order):
    assert blamed(rows) == set()


def test_condition_that_does_not_hold_is_not_found(rows, order):
    never_sent(order, f"flow = '{CONDITION}'")
    assert blamed(rows) == set()


@pytest.mark.parametrize("any_code", ['{"*": "pass"}', '{"*": "pass", "fraud": "error"}'])
def test_any_code_may_be_passed_over(rows, order, any_code):
    change(order, f"""flow = '{{"refused": {any_code}}}'""")
    assert blamed(rows) == set()


WITHOUT_REASON = [
    "flow = NULL",
    """flow = '{"refused": {"no_route": "error"}}'""",
    """flow = '{"refused": {"no_route": "error", "*": "pass"}}'""",
    """flow = '{"refused": {"other": "pass"}}'""",
    f"flow = '{CONDITION}'",
    "outcome = 'transient'",
    """error_code = 'other', flow = '{"refused": {"*": "pass"}}'""",  # its attempt says another
]


def test_any_code_does_not_stand_for_a_mistake_in_code(rows, order):
    change_attempt(order, "error_code = 'compute_failed'")
    change(order, """error_code = 'compute_failed', flow = '{"refused": {"*": "pass"}}'""")
    assert blamed(rows) == {(6, order)}


@pytest.mark.parametrize("columns", WITHOUT_REASON)
def test_step_that_is_skipped_without_its_refusal_is_found(rows, order, columns):
    change(order, columns)
    assert blamed(rows) == {(6, order)}


@pytest.mark.parametrize("flow", ["NULL", f"'{FLOW}'"])
def test_step_that_is_skipped_without_a_condition_is_found(rows, order, flow):
    never_sent(order, f"flow = {flow}")
    assert blamed(rows) == {(6, order)}


def test_skipped_step_whose_attempt_was_done_is_found(rows, order):
    change_attempt(order, "outcome = 'done', error_code = ''")
    assert blamed(rows) == {(5, order), (6, order)}


def test_skipped_step_that_its_service_did_is_found_unless_an_alert_says_so(rows, order):
    did_the_mail(rows, order)
    assert blamed(rows) == {(5, order)}
    step = Step.objects.get(task__reference=order, name=LAST)
    Event.objects.create(task=step.task, step=step, kind="late", actor="agent", attempt=1)
    assert blamed(rows) == set()


def test_effect_of_a_step_whose_condition_did_not_hold_is_found(rows, order):
    never_sent(order, f"flow = '{CONDITION}'")
    did_the_mail(rows, order)
    assert blamed(rows) == {(6, order)}


def test_skipped_step_in_doubt_is_found(rows, order):
    change(order, "in_doubt = true")
    assert blamed(rows) == {(12, order)}


@pytest.mark.parametrize("state", ["waiting", "pending", "cancelled"])
def test_processed_task_with_a_step_that_is_neither_done_nor_skipped_is_found(rows, order, state):
    never_sent(order, f"flow = '{CONDITION}'")
    change(order, f"process_state = '{state}'")
    assert (1, order) in blamed(rows)


def test_step_that_was_sent_before_what_it_comes_after_was_skipped_is_found(rows, order):
    flow = (
        """flow = '{"refused": {"*": "pass"}}', process_state = 'skipped', outcome = 'rejected'"""
    )
    shipped = "create_shipment"
    change(order, f"{flow}, error_code = 'x', result = NULL, undo_action = ''", shipped)
    change_attempt(order, "outcome = 'rejected', error_code = 'x'", shipped)
    entries = rows.ledger["shipping"]
    rows.ledger["shipping"] = [entry for entry in entries if entry.reference != order]
    assert blamed(rows) == set()
    # ended 2 s later, though what comes after it had been sent: only by their order is it seen
    change_attempt(order, "ended_at = a.ended_at + interval '2 s'", shipped)
    change(order, "ended_at = s.ended_at + interval '2 s'", shipped)
    assert blamed(rows) == set()
    plant(
        "UPDATE orchestration_attempt a SET id = -a.id FROM orchestration_step s, orchestration_task t"
        " WHERE s.id = a.step_id AND t.id = s.task_id AND t.reference = %(order)s"
        " AND s.name = 'capture_payment'",
        order=order,
    )
    assert blamed(rows) == {(6, order)}


class TestUndo:
    def test_undo_of_a_skipped_step_is_found(self, rows):
        order = rows.orders["undone"]
        change(order, REFUSED, "create_shipment")
        assert any(
            (breach.invariant, breach.reference) == (7, order) and "is planned" in breach.problem
            for breach in violations(rows)
        )

    def test_undo_step_that_is_skipped_is_found(self, rows):
        order = rows.orders["undone"]
        change(order, "process_state = 'skipped'", "capture_payment", "undo")
        assert (7, order) in blamed(rows)
        assert any("no condition" in breach.problem for breach in violations(rows))


class TestByHand:
    def test_step_done_by_hand_says_so_in_its_history(self):
        from orchestration.transitions.resubmit import done_by_hand

        step = in_error()
        done_by_hand(
            step.id, attempt=step.attempt, actor="ann", reason="by phone", result={"id": "1"}
        )
        assert violations() == []
        reference = step.task.reference
        plant("UPDATE orchestration_step SET done_by = '' WHERE id = %(step)s", step=step.id)
        assert (5, reference) in blamed(None)

    def test_step_that_says_so_without_such_a_history_is_found(self, rows):
        order = rows.orders["processed"]
        change(order, "done_by = 'ann'")
        assert blamed(rows) == {(5, order)}

    def test_step_in_error_that_says_so_is_found(self, rows):
        order = rows.orders["error"]
        change(order, "done_by = 'ann'", "create_shipment")
        assert blamed(rows) == {(5, order)}
