"""What customers are told, by where their order stands."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from orchestration.api import Direction, Progress, StepProgress, StepState, TaskState
from orders import snapshots, tracking
from orders.asking import Act, Asked
from orders.message import WORKFLOW
from orders.models import OrderStatus
from orders.stages import STEPS, UNDO_STEPS
from orders.tracking import track

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
        mend_by=NOW if state is ERROR else None,
        request={},
        in_doubt=False,
        result={"tracking": "TRK1"} if name == "create_shipment" and state is DONE else None,
    )


def at(state, *states, overdue=False, failures=0, code=""):
    steps = [
        step(name, one, failures if one in {PENDING, PROCESSING, ERROR} else 0, code)
        for name, one in zip(STEPS, states, strict=True)
    ]
    return Progress(
        state=state,
        created_at=NOW,
        ended_at=None,
        overdue=overdue,
        undoable=True,
        steps=tuple(steps),
    )


def undoing(state, dos, undos, code=""):
    """Return a task whose steps stand at `dos`, and whose undo steps, by name, at `undos`."""
    steps = [step(name, one, code=code) for name, one in zip(STEPS, dos, strict=True)]
    steps += [step(name, one, direction=Direction.UNDO) for name, one in undos.items()]
    return Progress(
        state=state,
        created_at=NOW,
        ended_at=None,
        overdue=False,
        undoable=False,
        steps=tuple(steps),
    )


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
    "just mended": (
        at(TaskState.PROCESSING, DONE, PENDING, *[WAITING] * 3, code="generic_decline"),
        tracking.WORKING,
        "busy",
    ),
    "overdue": (at(TaskState.PROCESSING, *BEGUN, overdue=True), tracking.TROUBLE, "slow"),
    "done": (at(TaskState.PROCESSED, *ALL_DONE), tracking.CONFIRMED, "good"),
    "declined": (
        at(TaskState.ERROR, DONE, ERROR, WAITING, WAITING, WAITING, code="generic_decline"),
        "Your card was declined. Nothing was charged.",
        "bad",
    ),
    "no funds": (
        at(TaskState.ERROR, DONE, ERROR, WAITING, WAITING, WAITING, code="insufficient_funds"),
        "Your card was declined for insufficient funds. Nothing was charged.",
        "bad",
    ),
    "stolen": (
        at(TaskState.ERROR, DONE, ERROR, WAITING, WAITING, WAITING, code="stolen_card"),
        "Your card was declined. Nothing was charged.",
        "bad",
    ),
    "sold out": (
        at(TaskState.ERROR, ERROR, DONE, WAITING, WAITING, WAITING, code="out_of_stock"),
        tracking.SOLD_OUT,
        "bad",
    ),
    "our fault": (
        at(TaskState.ERROR, DONE, ERROR, WAITING, WAITING, WAITING, code="http_401"),
        tracking.STUCK,
        "slow",
    ),
    "late failure": (at(TaskState.ERROR, DONE, DONE, DONE, DONE, ERROR), tracking.STUCK, "slow"),
    "undoing": (at(TaskState.UNDOING, DONE, DONE, *[CANCELLED] * 3), tracking.CANCELLING, "slow"),
    "undone": (at(TaskState.UNDONE, DONE, DONE, *[CANCELLED] * 3), tracking.CANCELLED, "bad"),
    "undo in trouble": (
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
        "Your card was declined for insufficient funds. " + tracking.CANCELLED,
        "bad",
    ),
    "paid back": (at(TaskState.UNDONE, *ALL_DONE), tracking.REFUNDED, "bad"),
}


def look(progress, age=1.0):
    return track(progress, placed_at=NOW, now=NOW + timedelta(seconds=age))


@pytest.mark.parametrize(("progress", "sentence", "mood"), CASES.values(), ids=CASES)
def test_one_plain_sentence(progress, sentence, mood):
    told = look(progress)
    assert (told.sentence, told.mood) == (sentence, mood)
    assert told.final == (progress is not None and progress.state in {"processed", "undone"})
    assert "internal" not in repr(told)


@pytest.mark.parametrize(
    "name", ["declined", "no funds", "sold out", "undone", "undone for the card", "paid back"]
)
def test_strangers_are_not_told_what_went_wrong(name):
    told = look(CASES[name][0]).redacted()
    assert told.sentence == tracking.STUCK
    assert "card" not in told.sentence
    assert "Checking your card" not in [stage.text for stage in told.stages]


def test_strangers_do_not_see_the_parcel():
    told = look(CASES["done"][0])
    assert told.parcel == "TRK1"
    assert told.redacted().parcel == ""


def test_steps_are_done_current_or_to_come():
    told = look(at(TaskState.PROCESSING, DONE, PROCESSING, WAITING, WAITING, WAITING, failures=2))
    assert [(stage.text, stage.state) for stage in told.stages[:4]] == [
        ("Order received", "done"),
        ("Items set aside", "done"),
        ("Checking your card again", "now"),
        ("Book your shipment", "next"),
    ]
    assert told.stages[1].at == NOW


def test_undoing_is_shown_in_the_place_of_what_is_undone():
    undos = {"capture_payment": DONE, "create_shipment": PROCESSING, "authorize_payment": WAITING}
    told = look(undoing(TaskState.UNDOING, ALL_DONE, {**undos, "reserve_stock": CANCELLED}))
    assert [(stage.text, stage.state) for stage in told.stages[1:]] == [
        ("Items set aside", "done"),
        ("Card checked", "done"),
        ("Cancelling your shipment", "now"),
        ("Payment returned", "done"),
        ("Confirmation sent", "done"),
    ]
    assert told.parcel == "TRK1"


def test_an_undo_in_trouble_is_shown_where_it_is():
    told = look(CASES["undo in trouble"][0])
    assert (told.stages[4].text, told.stages[4].state) == ("Returning your payment", "failed")
    assert not told.final


def test_a_cancelled_shipment_has_no_parcel():
    told = look(undoing(TaskState.UNDOING, ALL_DONE, {"create_shipment": DONE}))
    assert told.parcel == ""


def test_a_step_of_another_workflow_version_is_shown_plainly():
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
def test_it_is_looked_at_ever_more_rarely(age, interval):
    assert look(None, age).interval == interval


@pytest.mark.parametrize(
    ("case", "age", "until"),
    [
        ("not taken yet", 29, 30),  # then we admit that it takes long
        ("begun", 29, 60),
        ("begun", 7200, None),
        ("declined", 1, None),  # a choice half made is left alone
    ],
)
def test_when_time_alone_changes_it_is_known(case, age, until):
    progress = CASES[case][0]
    told = look(progress, age)
    assert told.until == (until and NOW + timedelta(seconds=until))
    if until:
        assert replace(look(progress, until - 0.1), until=None) == replace(told, until=None)
        assert look(progress, until + 0.1) != told


def ask(case, act, refused="", age=3600.0):
    asked = Asked(id=UUID(int=1), act=act, refused=refused)
    return track(CASES[case][0], placed_at=NOW, now=NOW + timedelta(seconds=age), asked=asked)


@pytest.mark.parametrize(("case", "act"), [("declined", Act.CARD), ("begun", Act.CANCEL)])
def test_a_request_on_its_way_is_looked_after_and_nothing_else_is_offered(case, act):
    told = ask(case, act)
    assert told.sentence == (tracking.CANCEL_ASKED if act is Act.CANCEL else tracking.PASSED_ON)
    assert (told.mends, told.cancellable, told.interval) == ((), False, tracking.ASKED_EVERY)
    assert told.thanks == (act is not Act.CANCEL)
    assert not told.notice


def test_an_order_that_is_done_is_not_final_before_its_request_is_answered():
    assert not ask("done", Act.CANCEL).final
    assert ask("done", Act.CANCEL, "IRREVERSIBLE").final
    told = ask("undone", Act.CANCEL)  # by others: no answer matters any more
    assert (told.final, told.sentence) == (True, tracking.CANCELLED)


@pytest.mark.parametrize(
    ("case", "act", "refusal", "notice"),
    [
        ("done", Act.CANCEL, "IRREVERSIBLE", tracking.TOO_LATE),
        ("begun", Act.CANCEL, "CHANGED", tracking.MOVED_ON),
        ("undoing", Act.CANCEL, "NOT_UNDOABLE", ""),
        ("undone", Act.CANCEL, "NOT_UNDOABLE", ""),
        ("undoing", Act.CARD, "NOT_IN_ERROR", tracking.MOVED_ON),
        ("begun", Act.WAIT, "OTHER_ATTEMPT", tracking.MOVED_ON),
        ("done", Act.CARD, "NOT_IN_ERROR", ""),
    ],
)
def test_a_refused_request_is_explained_as_long_as_that_says_more(case, act, refusal, notice):
    told, plain = ask(case, act, refusal), look(CASES[case][0], 3600)
    assert replace(told, notice="") == plain
    assert told.notice == notice
    assert told.redacted().notice == ""
    assert (told.said != plain.said) == bool(notice)


STATUS_ALONE = {
    OrderStatus.CONFIRMED: tracking.CONFIRMED,
    OrderStatus.FAILED: tracking.STUCK,
    OrderStatus.UNDOING: tracking.CANCELLING,
    OrderStatus.UNDONE: tracking.CANCELLED,
}


@pytest.mark.parametrize("snapshot", [None, CASES["begun"][0].as_json()], ids=["none", "stale"])
@pytest.mark.parametrize("status", STATUS_ALONE)
def test_without_a_snapshot_of_the_last_message_the_status_is_shown(status, snapshot):
    told = look(snapshots.read(snapshot, status, NOW))
    assert (told.sentence, told.mends, told.cancellable) == (STATUS_ALONE[status], (), False)


def test_an_order_without_any_message_was_received():
    assert snapshots.read(None, OrderStatus.RECEIVED, NOW) is None
    assert snapshots.read(CASES["declined"][0].as_json(), OrderStatus.RECEIVED, NOW) is None


@pytest.mark.parametrize("case", [name for name, (progress, *_) in CASES.items() if progress])
def test_a_snapshot_shows_what_the_task_does(case):
    progress = CASES[case][0]
    kept = json.loads(json.dumps(progress.as_json()))
    assert look(snapshots.read(kept, snapshots.STATUS[progress.state], NOW)) == look(progress)


def test_a_long_wait_is_admitted():
    assert look(None, 60).sentence == tracking.DELAYED


def test_every_step_has_words():
    from orchestration import registry

    steps = registry.workflows[WORKFLOW].steps
    assert [one.name for one in steps] == list(STEPS)
    assert [one.name for one in steps if not one.irreversible] == list(UNDO_STEPS)
