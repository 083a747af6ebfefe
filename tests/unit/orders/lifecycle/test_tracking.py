"""Order tracking: sentence, stages, fixes, polling and notices by an order's progress."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from orchestration import registry
from orchestration.api import Direction, Progress, StepProgress, StepState, TaskState
from orders.lifecycle import paying, snapshots, tracking
from orders.lifecycle.message import WORKFLOW
from orders.lifecycle.requests import Change, ChangeRequest
from orders.lifecycle.stages import NOT_SHOWN, SOMETIMES, STEPS, UNDO_STEPS
from orders.lifecycle.tracking import track
from orders.models.order import OrderStatus

NOW = datetime(2030, 5, 1, 12, 0, tzinfo=UTC)
WAITING, PENDING, PROCESSING = StepState.WAITING, StepState.PENDING, StepState.PROCESSING
DONE, ERROR, CANCELLED = StepState.PROCESSED, StepState.ERROR, StepState.CANCELLED


def step(name, state, failures=0, code="", direction=Direction.DO):
    return StepProgress(
        name=name,
        direction=direction,
        state=state,
        attempt=1,
        failure_count=failures,
        ended_at=NOW if state is DONE else None,
        error_code=code,
        error_message="internal: do not show",
        resolve_by=NOW if state is ERROR else None,
        request={},
        in_doubt=False,
        result={"tracking": "TRK1"} if name == "create_shipment" and state is DONE else None,
    )


def at(state, *states, overdue=False, failures=0, code=""):
    steps = [
        step(name, its, failures if its in {PENDING, PROCESSING, ERROR} else 0, code)
        for name, its in zip(STEPS, states, strict=True)
    ]
    return Progress(
        state=state,
        created_at=NOW,
        ended_at=None,
        overdue=overdue,
        undoable=True,
        steps=tuple(steps),
    )


def undoing(state, dos, undo_steps, code=""):
    """Return a task with steps in the states `dos`, and undo steps in states by name."""
    steps = [step(name, its, code=code) for name, its in zip(STEPS, dos, strict=True)]
    steps += [step(name, its, direction=Direction.UNDO) for name, its in undo_steps.items()]
    return Progress(
        state=state,
        created_at=NOW,
        ended_at=None,
        overdue=False,
        undoable=False,
        steps=tuple(steps),
    )


DECLINED = f"{paying.PLAINLY_DECLINED} {tracking.NOTHING_CHARGED}"
NO_FUNDS = paying.REASONS["insufficient_funds"]
BEGUN = (PROCESSING, PENDING, WAITING, WAITING, WAITING)
ALL_DONE = (DONE,) * 5
CASES = {
    "not taken yet": (None, tracking.RECEIVED, "busy"),
    "taken": (at(TaskState.PENDING, PENDING, PENDING, *[WAITING] * 3), tracking.WORKING, "busy"),
    "begun": (at(TaskState.PROCESSING, *BEGUN), tracking.WORKING, "busy"),
    "retrying": (at(TaskState.PROCESSING, *BEGUN, failures=1), tracking.TROUBLE, "slow"),
    "waiting for a service that is down": (
        at(TaskState.PROCESSING, DONE, PENDING, *[WAITING] * 3, code="connection_lost"),
        tracking.TROUBLE,
        "slow",
    ),
    "just fixed": (
        at(TaskState.PROCESSING, DONE, PENDING, *[WAITING] * 3, code="generic_decline"),
        tracking.WORKING,
        "busy",
    ),
    "overdue": (at(TaskState.PROCESSING, *BEGUN, overdue=True), tracking.TROUBLE, "slow"),
    "done": (at(TaskState.PROCESSED, *ALL_DONE), tracking.CONFIRMED, "good"),
    "declined": (
        at(TaskState.ERROR, DONE, ERROR, WAITING, WAITING, WAITING, code="generic_decline"),
        DECLINED,
        "bad",
    ),
    "insufficient funds": (
        at(TaskState.ERROR, DONE, ERROR, WAITING, WAITING, WAITING, code="insufficient_funds"),
        f"{NO_FUNDS} {tracking.NOTHING_CHARGED}",
        "bad",
    ),
    "stolen": (
        at(TaskState.ERROR, DONE, ERROR, WAITING, WAITING, WAITING, code="stolen_card"),
        DECLINED,
        "bad",
    ),
    "sold out": (
        at(TaskState.ERROR, ERROR, DONE, WAITING, WAITING, WAITING, code="out_of_stock"),
        tracking.SOLD_OUT,
        "bad",
    ),
    "failed at the partner": (
        at(TaskState.ERROR, DONE, ERROR, WAITING, WAITING, WAITING, code="http_401"),
        tracking.STUCK,
        "slow",
    ),
    "late failure": (at(TaskState.ERROR, DONE, DONE, DONE, DONE, ERROR), tracking.STUCK, "slow"),
    "undoing": (at(TaskState.UNDOING, DONE, DONE, *[CANCELLED] * 3), tracking.CANCELLING, "slow"),
    "undone": (at(TaskState.UNDONE, DONE, DONE, *[CANCELLED] * 3), tracking.CANCELLED, "bad"),
    "failed undo": (
        undoing(TaskState.ERROR, (DONE,) * 5, {"capture_payment": ERROR}),
        tracking.CANCELLING_STUCK,
        "slow",
    ),
    "undone for the card": (
        undoing(
            TaskState.UNDONE,
            (DONE, *[CANCELLED] * 4),
            {"reserve_stock": DONE},
            "insufficient_funds",
        ),
        f"{NO_FUNDS} {tracking.CANCELLED}",
        "bad",
    ),
    "refunded": (at(TaskState.UNDONE, *ALL_DONE), tracking.REFUNDED, "bad"),
}


def look(progress, age=1.0):
    return track(progress, placed_at=NOW, now=NOW + timedelta(seconds=age))


@pytest.mark.parametrize(("progress", "sentence", "mood"), CASES.values(), ids=CASES)
def test_tracking_by_progress(progress, sentence, mood):
    shown = look(progress)
    assert (shown.sentence, shown.mood) == (sentence, mood)
    assert shown.final == (progress is not None and progress.state in {"processed", "undone"})
    assert "internal" not in repr(shown)


@pytest.mark.parametrize(
    "name",
    ["declined", "insufficient funds", "sold out", "undone", "undone for the card", "refunded"],
)
def test_redacted_tracking_hides_the_failure(name):
    shown = look(CASES[name][0]).redacted()
    assert shown.sentence == tracking.STUCK
    assert "card" not in shown.sentence
    assert STEPS["authorize_payment"][1] not in [stage.text for stage in shown.stages]


def test_redacted_tracking_hides_the_parcel():
    shown = look(CASES["done"][0])
    assert shown.parcel == "TRK1"
    assert shown.redacted().parcel == ""


def test_stages_of_an_order_in_process():
    shown = look(at(TaskState.PROCESSING, DONE, PROCESSING, WAITING, WAITING, WAITING, failures=2))
    assert [(stage.text, stage.state) for stage in shown.stages[:4]] == [
        ("Order received", "done"),
        (STEPS["reserve_stock"][0], "done"),
        (f"{STEPS['authorize_payment'][1]} again", "now"),
        (STEPS["create_shipment"][2], "next"),
    ]
    assert shown.stages[1].at == NOW


def test_stages_of_an_undo():
    undo_steps = {
        "capture_payment": DONE,
        "create_shipment": PROCESSING,
        "authorize_payment": WAITING,
    }
    shown = look(undoing(TaskState.UNDOING, ALL_DONE, {**undo_steps, "reserve_stock": CANCELLED}))
    assert [(stage.text, stage.state) for stage in shown.stages[1:]] == [
        (STEPS["reserve_stock"][0], "done"),
        (STEPS["authorize_payment"][0], "done"),
        (UNDO_STEPS["create_shipment"][1], "now"),
        (UNDO_STEPS["capture_payment"][0], "done"),
        (STEPS["send_confirmation"][0], "done"),
    ]
    assert shown.parcel == "TRK1"


@pytest.mark.parametrize("state", [TaskState.PROCESSING, TaskState.UNDOING, TaskState.PROCESSED])
def test_step_that_is_not_needed_is_left_out_and_no_trouble(state):
    skipped = step("create_shipment", StepState.SKIPPED, failures=2, code="not_served")
    progress = at(state, DONE, DONE, StepState.SKIPPED, DONE, DONE)
    steps = [skipped if its.name == "create_shipment" else its for its in progress.steps]
    shown = look(replace(progress, steps=tuple(steps)))
    names = ("reserve_stock", "authorize_payment", "capture_payment", "send_confirmation")
    assert [stage.text for stage in shown.stages[1:]] == [STEPS[name][0] for name in names]
    assert shown.sentence not in {str(tracking.TROUBLE), str(tracking.STUCK)}
    assert shown.parcel == ""


@pytest.mark.parametrize("taken", [{}, {"reserve_stock": WAITING}])
def test_order_that_is_being_cancelled_announces_nothing_to_come(taken):
    dos = (DONE, DONE, PENDING, WAITING, PROCESSING)
    shown = look(undoing(TaskState.UNDOING, dos, taken, code="connection_lost"))
    assert [(stage.text, stage.state) for stage in shown.stages[3:]] == [
        (STEPS[name][2], "off")
        for name in ("create_shipment", "capture_payment", "send_confirmation")
    ]
    assert "again" not in shown.spoken


def test_stages_of_a_failed_undo():
    shown = look(CASES["failed undo"][0])
    assert (shown.stages[4].text, shown.stages[4].state) == (
        UNDO_STEPS["capture_payment"][1],
        "failed",
    )
    assert not shown.final


def test_parcel_of_a_cancelled_shipment_is_empty():
    shown = look(undoing(TaskState.UNDOING, ALL_DONE, {"create_shipment": DONE}))
    assert shown.parcel == ""


def test_stage_of_an_unknown_step():
    progress = Progress(
        state=TaskState.PROCESSING,
        created_at=NOW,
        ended_at=None,
        overdue=False,
        undoable=True,
        steps=(step("wrap_as_gift", PROCESSING),),
    )
    assert look(progress).stages[1].text == "Wrap as gift"


@pytest.mark.parametrize(
    ("age", "interval"), [(-5, 1), (5, 1), (50, 2), (100, 5), (600, 15), (7200, 30)]
)
def test_poll_interval_grows_with_the_orders_age(age, interval):
    assert look(None, age).interval == interval


@pytest.mark.parametrize(
    ("case", "age", "until"),
    [
        ("not taken yet", 29, 30),  # then the delay is shown
        ("begun", 29, 60),
        ("begun", 7200, None),
        ("declined", 1, None),  # polling must not disturb a form
    ],
)
def test_tracking_until_time_alone_changes_it(case, age, until):
    progress = CASES[case][0]
    shown = look(progress, age)
    assert shown.until == (until and NOW + timedelta(seconds=until))
    if until:
        assert replace(look(progress, until - 0.1), until=None) == replace(shown, until=None)
        assert look(progress, until + 0.1) != shown


def ask(case, act, refused="", age=3600.0):
    asked = ChangeRequest(id=UUID(int=1), act=act, refused=refused)
    return track(CASES[case][0], placed_at=NOW, now=NOW + timedelta(seconds=age), asked=asked)


@pytest.mark.parametrize(("case", "act"), [("declined", Change.CARD), ("begun", Change.CANCEL)])
def test_tracking_with_a_pending_request(case, act):
    shown = ask(case, act)
    assert shown.sentence == (tracking.CANCEL_ASKED if act is Change.CANCEL else tracking.PASSED_ON)
    assert (shown.fixes, shown.cancellable, shown.interval) == ((), False, tracking.POLL_PENDING)
    assert shown.thanks == (act is not Change.CANCEL)
    assert not shown.notice


def test_tracking_with_a_pending_request_is_not_final():
    assert not ask("done", Change.CANCEL).final
    assert ask("done", Change.CANCEL, "IRREVERSIBLE").final
    shown = ask("undone", Change.CANCEL)  # undone by others, so the answer does not matter
    assert (shown.final, shown.sentence) == (True, tracking.CANCELLED)


@pytest.mark.parametrize(
    ("case", "act", "refusal", "notice"),
    [
        ("done", Change.CANCEL, "IRREVERSIBLE", tracking.TOO_LATE),
        ("begun", Change.CANCEL, "CHANGED", tracking.MOVED_ON),
        ("undoing", Change.CANCEL, "NOT_UNDOABLE", ""),
        ("undone", Change.CANCEL, "NOT_UNDOABLE", ""),
        ("undoing", Change.CARD, "NOT_IN_ERROR", tracking.MOVED_ON),
        ("begun", Change.WAIT, "OTHER_ATTEMPT", tracking.MOVED_ON),
        ("done", Change.CARD, "NOT_IN_ERROR", ""),
    ],
)
def test_tracking_with_a_refused_request_has_a_notice(case, act, refusal, notice):
    shown, plain = ask(case, act, refusal), look(CASES[case][0], 3600)
    assert replace(shown, notice="") == plain
    assert shown.notice == notice
    assert shown.redacted().notice == ""
    assert (shown.digest != plain.digest) == bool(notice)


STATUS_ALONE = {
    OrderStatus.CONFIRMED: tracking.CONFIRMED,
    OrderStatus.FAILED: tracking.STUCK,
    OrderStatus.UNDOING: tracking.CANCELLING,
    OrderStatus.UNDONE: tracking.CANCELLED,
}


@pytest.mark.parametrize("snapshot", [None, CASES["begun"][0].as_json()], ids=["none", "stale"])
@pytest.mark.parametrize("status", STATUS_ALONE)
def test_progress_without_a_current_snapshot(status, snapshot):
    shown = look(snapshots.read(snapshot, status, NOW))
    assert (shown.sentence, shown.fixes, shown.cancellable) == (STATUS_ALONE[status], (), False)


def test_progress_before_the_first_message():
    assert snapshots.read(None, OrderStatus.RECEIVED, NOW) is None
    assert snapshots.read(CASES["declined"][0].as_json(), OrderStatus.RECEIVED, NOW) is None


@pytest.mark.parametrize("case", [name for name, (progress, *_) in CASES.items() if progress])
def test_progress_from_a_snapshot(case):
    progress = CASES[case][0]
    stored = json.loads(json.dumps(progress.as_json()))
    assert look(snapshots.read(stored, snapshots.STATUS[progress.state], NOW)) == look(progress)


def test_tracking_before_the_first_message_after_a_long_time():
    assert look(None, 60).sentence == tracking.DELAYED


def test_stages_exist_for_each_step():
    steps = [step for step in registry.workflows[WORKFLOW].steps if step.name not in NOT_SHOWN]
    usual = [declared.name for declared in steps if declared.name not in SOMETIMES]
    assert (usual, {declared.name for declared in steps}) == (list(STEPS), STEPS.keys() | SOMETIMES)
    undone = [declared.name for declared in steps if declared.undo_action]
    assert undone == list(UNDO_STEPS)
